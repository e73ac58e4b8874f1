"""Published scores with protocol, source and licence, and which of them a score may stand beside."""
