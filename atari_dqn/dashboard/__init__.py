"""`dqn dashboard`: the runs below a folder, shown in a browser; files are only read."""
