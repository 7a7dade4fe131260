"""Workflows written as named steps: what a flow is, and how a claimed run is carried from step to step."""
