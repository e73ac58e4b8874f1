"""Benchmark the training of a spec: speed, time per part, and the share of the hardware's ceilings."""
