"""Workloads of the papers, drawn from seeds."""
