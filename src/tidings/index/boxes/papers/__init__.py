"""Box indexes from the papers that serve only comparison; imported when asked for by name."""
