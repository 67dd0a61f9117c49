"""Graph search and stochastic shortest paths: reachability, value iteration, optimistic planning, exact evaluation."""
