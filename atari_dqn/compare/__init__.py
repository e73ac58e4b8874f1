"""Runs side by side: groups of seeds, their statistics, and what was published under the same protocol."""
