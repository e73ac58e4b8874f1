"""Assembly: the parts of a training, made from the whole spec."""
