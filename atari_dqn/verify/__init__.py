"""Proof that a run's files are whole, and that going on from a checkpoint repeats to the last bit."""
