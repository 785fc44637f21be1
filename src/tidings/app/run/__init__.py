"""Runs a config: from the files of its source, by an engine, into the folder of its sink."""
