"""Records as files and columns: JSON, Arrow, Parquet, CSV, and a binary container for state."""
