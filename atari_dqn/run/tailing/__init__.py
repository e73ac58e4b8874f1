"""Tail a run: read its files from another process while they grow, possibly on a network file system."""
