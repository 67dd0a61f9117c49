"""Finds every state that can be reliably reached within a number of expected steps, and proves it."""
