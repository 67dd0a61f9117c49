"""Worlds: what explorers act in, and the orders they give."""
