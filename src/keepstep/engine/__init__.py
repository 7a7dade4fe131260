"""The rules that need a store: read, decide, append; and decide again when somebody else was first."""
