"""Compiled kernels of the diversifiers."""
