"""Every diversifier as its definition reads, in plain Python: the judge of the compiled forms.

They also choose where a distance is not one of ours, and so unknown to the kernels.
"""
