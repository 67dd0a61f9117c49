"""Run folders: an exploration is stored as it runs, so that it can be killed at any time and resumed."""
