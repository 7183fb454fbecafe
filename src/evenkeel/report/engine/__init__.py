"""The engine that draws charts, in a process of its own."""
