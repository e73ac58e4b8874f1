"""Failure gates: each looks at one thing a run measures, and warns or halts where that goes wrong."""
