"""Kernels of rules."""
