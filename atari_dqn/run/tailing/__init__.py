"""A run seen from outside its process: from its files alone, while they grow, also over a network disk."""
