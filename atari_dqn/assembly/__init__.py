"""Assembly: makes the parts of a training from a spec."""
