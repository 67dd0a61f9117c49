"""Run folders: an exploration is kept while it goes on, so that it can be killed at any moment and taken up again."""
