"""Training: assembly of the parts, Algorithm 1, and the session that logs, evaluates and saves."""
