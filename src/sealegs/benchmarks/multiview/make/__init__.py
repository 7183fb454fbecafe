"""The generator of the data set, and the builder from a person's own texts."""
