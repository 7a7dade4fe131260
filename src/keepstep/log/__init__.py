"""What a run is: records, which may follow which, what they add up to, and the chain that guards them. All pure."""
