"""What was counted, and what the counts prove."""
