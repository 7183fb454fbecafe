"""Formats that other projects share results in, and the files that they read."""
