"""Evaluate frozen weights: play games under a protocol, and store their scores."""
