"""Conditions over events: predicates, their text form, and which condition implies which."""
