"""Stochastic shortest paths: value iteration, optimistic and interval planning, exact evaluation."""
