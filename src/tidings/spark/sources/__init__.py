"""Sources that Spark lacks: Kafka without jars, and append-only SQL tables."""
