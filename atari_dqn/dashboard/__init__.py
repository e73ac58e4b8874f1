"""`dqn dashboard`: every run below a folder in a browser. It reads files and changes none."""
