"""Ask, journal, score: what happens between a data set and the folder of a run, for any benchmark and model."""
