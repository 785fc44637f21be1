"""Compiled loops of the diversifiers."""
