"""An interval index that takes changes while it answers queries."""
