"""Every table and figure of the papers, as experiments; `experiment.py` explains how to add one."""
