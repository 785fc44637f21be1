"""A box index that takes changes while it answers events."""
