"""Box indexes from the papers that serve comparison only."""
