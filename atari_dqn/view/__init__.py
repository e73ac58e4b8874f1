"""What a person sees while a run goes on: a line a period, or a live view of the terminal."""
