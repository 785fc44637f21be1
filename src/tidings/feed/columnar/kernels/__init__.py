"""Compiled loops over the windows of all subscribers of a cohort."""
