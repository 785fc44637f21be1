"""Compiled loops of the match stage."""
