"""The search for an expected answer in a text, for every benchmark that knows answers: `mention`."""
