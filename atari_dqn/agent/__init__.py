"""What learns: networks, optimizers, losses put together, and the ε-greedy policy."""
