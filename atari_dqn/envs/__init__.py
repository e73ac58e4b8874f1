"""Vectorized Atari environments: emulators and preprocessing, in this process or in worker processes."""
