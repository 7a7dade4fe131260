"""Carries runs on: claims what is ready, due or left behind, so many at once, until it is told to stop."""
