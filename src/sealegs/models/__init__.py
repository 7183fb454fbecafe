"""The backends: a file or a folder each."""
