"""The pool of past transitions: a ring of frames, the samplers that choose from it, n-step windows."""
