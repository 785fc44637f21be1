"""Kernels of the access index."""
