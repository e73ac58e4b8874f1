"""A comparison as pictures and as a page."""
