"""The journal: every answered request of a run with its answer, in SQLite."""
