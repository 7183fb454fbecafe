"""What is printed at the terminal: tables, and how far a run is."""
