"""Runs of a config: in one process or on Spark, from its source into its sink."""
