"""The folder of a sweep: its record, its runs, and their progress, read from the files alone."""
