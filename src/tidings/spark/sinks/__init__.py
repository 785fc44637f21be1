"""Sinks for the outcomes of a stream: Parquet, any Spark format, or a store."""
