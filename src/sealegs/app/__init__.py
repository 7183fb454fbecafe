"""The web app: pages over the public API. It reads runs from their folders and owns no state."""
