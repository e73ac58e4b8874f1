"""The replay buffer: a ring of frames, uniform and prioritized samplers, and n-step transitions."""
