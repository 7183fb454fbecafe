"""Ask, journal, score: what happens between a data set and a run's folder, for any benchmark and model."""
