"""Rank and feed combined in one process: publish events, receive deliveries."""
