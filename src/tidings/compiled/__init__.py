"""The numba toolkit that several packages share: decorators, integers, bits, SIMD, exact sums."""
