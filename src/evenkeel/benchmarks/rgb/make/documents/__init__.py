"""An RGB set from a person's own documents, written by a model and checked at every step."""
