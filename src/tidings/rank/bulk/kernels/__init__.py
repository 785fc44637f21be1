"""Compiled loops that rank an event for all of its subscribers."""
