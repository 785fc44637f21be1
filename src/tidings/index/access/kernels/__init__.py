"""Compiled loops of the access index."""
