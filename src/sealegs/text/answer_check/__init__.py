"""Whether a text gives an answer that it names, or denies it, for every benchmark that knows answers."""
