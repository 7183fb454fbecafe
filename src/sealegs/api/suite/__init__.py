"""Suites: models × benchmarks × options from one YAML file, executed in one process and ranked."""
