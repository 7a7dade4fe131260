"""Where runs live: each store keeps records and rows, one method is one transaction, and none of them knows a rule."""
