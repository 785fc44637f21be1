"""Compiled loops of the box indexes."""
