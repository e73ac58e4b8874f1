"""A run on disk: directory, provenance, events, scores and checkpoints; and reading it as it grows."""
