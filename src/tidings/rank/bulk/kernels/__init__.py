"""Kernels that rank events for all subscribers at once."""
