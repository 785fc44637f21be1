"""The lab: recorded streams replayed under any policy, and the papers' experiments."""
