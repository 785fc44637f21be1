"""Index structures from the papers that serve comparison only; loaded when asked for by name."""
