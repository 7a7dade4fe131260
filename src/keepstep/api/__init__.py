"""What people type: stores and runs, sync and async. Thin: every rule is in the engine."""
