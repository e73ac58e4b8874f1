"""The machine: its hardware, what a run will need of it, and the settings that suit it."""
