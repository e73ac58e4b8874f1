"""Actors in processes of their own: they play with copies of the network, and send what they played."""
