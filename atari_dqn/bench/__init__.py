"""How fast a spec trains here, where its time goes, and how near that is to what the hardware can do."""
