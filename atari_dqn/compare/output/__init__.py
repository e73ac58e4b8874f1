"""Draw a comparison: a plot and an HTML page."""
