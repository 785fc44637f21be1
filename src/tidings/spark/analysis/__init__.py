"""Batch analyses of DataFrames: diversification and the quality of deliveries."""
