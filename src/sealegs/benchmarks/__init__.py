"""The four benchmarks: a folder each, with the same files."""
