"""Leases: which process may write to a run of a sweep, on any number of hosts that share its folder."""
