"""The paper's tables and figures: experiments as data, a runner over seeds, statistics, and the published numbers."""
