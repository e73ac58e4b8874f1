"""Published scores with protocol, source and licence, and the protocol matching that selects them."""
