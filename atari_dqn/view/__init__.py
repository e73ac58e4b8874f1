"""What the terminal shows: runs, as a live view or one line a period, comparisons and progress bars."""
