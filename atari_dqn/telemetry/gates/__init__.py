"""Failure gates: each checks one measurement of a run, and warns or halts if it is beyond a threshold."""
