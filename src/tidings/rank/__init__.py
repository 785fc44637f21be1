"""Index and score combined: which subscribers want an event, and how much."""
