"""Suites: models × benchmarks × options from one YAML file, each run in a process of its own."""
