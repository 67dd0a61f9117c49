"""Transition counts, confidence regions, and tests that are valid at any time."""
