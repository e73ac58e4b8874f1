"""Compare runs: groups of seeds, their statistics, and published scores of the same protocol."""
