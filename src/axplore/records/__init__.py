"""What is kept of an exploration: values without logic, below the prover and the verifier, and one codec for files.

Everybody may read records; nobody adds behaviour to them. What is computed from a record lives where it is computed, so
the verifier can share records with the prover and still share no computation.
"""
