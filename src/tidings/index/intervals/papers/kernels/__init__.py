"""Compiled loops of the papers' interval trees."""
