"""Samples on a page: the table of all, the view of one, and those on which two runs differ."""
