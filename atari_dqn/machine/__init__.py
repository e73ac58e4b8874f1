"""The machine: its hardware, the memory, disk and time that a run needs, and machine-dependent settings."""
