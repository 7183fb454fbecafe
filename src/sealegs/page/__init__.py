"""What a benchmark declares to be shown, and how numbers and examples are written."""
