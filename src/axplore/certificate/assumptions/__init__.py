"""What certificates assume, as the verifier sees it: one file for each kind, listed in `registry`."""
