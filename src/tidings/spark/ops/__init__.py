"""Operating a pipeline: Java, progress, metrics, stopping, and readable errors."""
