"""Where the outcomes of a stream go: Parquet, any Spark format, or a store."""
