"""Evaluation: games played with frozen weights, and what is kept of them."""
