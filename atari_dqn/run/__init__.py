"""Runs on disk: directory, provenance, events, scores, checkpoints, and tailing of a running training."""
