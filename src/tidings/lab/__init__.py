"""The lab: recorded streams replayed, to see what delivery policies would have done."""
