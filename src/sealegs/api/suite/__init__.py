"""Suites: models × benchmarks × options from one YAML file, executed and ranked."""
