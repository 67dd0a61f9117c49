"""The paper's tables and figures: experiments as data, their runs over seeds, and the published numbers."""
