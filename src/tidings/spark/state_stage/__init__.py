"""The stateful stage on Spark: the feeds of one bucket of subscribers."""
