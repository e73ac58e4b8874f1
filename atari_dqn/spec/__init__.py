"""Run specs: the schema, the tracks, strict loading, and what two specs differ in."""
