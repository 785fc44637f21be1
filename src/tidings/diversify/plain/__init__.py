"""Every diversifier in plain Python, as its definition reads: the judge of the compiled versions.

Nothing here runs a kernel. The plain versions also choose where a distance is user-defined, which
kernels cannot take.
"""
