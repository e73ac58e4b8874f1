"""What a run reports: declared columns, typed events, and the tables they are written to."""
