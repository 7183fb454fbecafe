"""One step of generation: the attention of a new token, and the choice of the next."""
