"""Training: Algorithm 1, and the session that logs, evaluates and saves."""
