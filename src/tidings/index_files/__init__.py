"""Index files: a matcher that many processes map, as versions of a base and the deltas after it."""
