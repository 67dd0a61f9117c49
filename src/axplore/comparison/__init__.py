"""Comparisons: explorers over seeds on one world, and runs side by side."""
