"""Data that is not a plain file of this machine: fetched, unpacked, renamed."""
