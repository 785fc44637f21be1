"""Sources that Spark does not bring along: Kafka without jars, and tables that only grow."""
