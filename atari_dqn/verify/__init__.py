"""Verify that the files of a run are undamaged, and that it repeats bit by bit from a checkpoint."""
