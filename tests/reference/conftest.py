"""The tables of published scores."""
