"""Results of other harnesses, as files."""
