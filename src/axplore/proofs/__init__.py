"""What counts prove: bounds over a confidence region, claims, and the evidence for a certificate."""
