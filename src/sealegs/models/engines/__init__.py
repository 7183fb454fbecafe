"""Where models run: in this process, or in processes of a Ray cluster."""
