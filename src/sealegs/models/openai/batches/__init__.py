"""Batches: all requests of a phase handed in as files, answered within a day, at a lower price."""
