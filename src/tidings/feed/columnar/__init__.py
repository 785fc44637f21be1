"""The feeds of all subscribers in arrays, one cohort per policy."""
