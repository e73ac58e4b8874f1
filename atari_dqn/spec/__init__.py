"""Run specs: the schema, the tracks, strict loading, and the differences between two specs."""
