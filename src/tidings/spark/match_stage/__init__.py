"""The stateless stage on Spark: match events and send each bucket its matches."""
