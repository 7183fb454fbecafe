"""Inspect (the PyPI package `inspect-ai`): the benchmarks as its tasks, its logs read and written.

Nothing here imports inspect_ai unless Inspect itself loads `tasks`, or a run is exported to a log.
"""
