"""Compiled loops of the interval indexes."""
