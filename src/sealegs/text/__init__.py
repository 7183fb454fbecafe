"""What is done to text whoever asks: splitting into words, BM25, token estimates, prompt templates."""
