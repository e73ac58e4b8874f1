"""Telemetry of a run: declared columns, typed events, and the tables and sinks they are written to."""
