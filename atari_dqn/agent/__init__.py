"""The agents in plain PyTorch: networks, losses, optimizers, the learner and the actor."""
