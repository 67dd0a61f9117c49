"""Systems and models whose answers are known, and that hide or break something."""
