"""Checkpoints: the whole state of a run on disk, written atomically, verified when read."""
