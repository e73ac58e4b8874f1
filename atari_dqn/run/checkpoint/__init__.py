"""Checkpoints: the complete state of a run on disk, written atomically and verified when read."""
