"""Sweeps, tunes, and the actors of a run, on a Ray cluster, which needs the extra `ray`.

    address         which clusters may be joined, and what must be set for it; imports no Ray
    local_cluster   a cluster on this machine for one command: the process that starts it and ends all of it
    cluster         a joined cluster: its nodes, their hardware and versions, whether it still answers
    command         the leases of a command, one for each run that it has trained: without it the run stops
    node            what a node reports about itself, and how it trains a member: plain values in and out
    node_room       a node with what is free on it
    site            the nodes with what is free on each, and the tasks that run there
    actor_room      what an actor needs of a node, and whether a cluster has room for all of a run
    actor_carrier   starts actors, puts weights into the store, and finds the messages that have arrived
    actor_handle    the learner's end of an actor: its open orders, the steps it has reported
    remote_actor    what runs on a node for an actor: orders in, bytes out

For a sweep Ray carries paths, numbers and text; its state is its folder, as on one machine. The workers give
each run its part of a node, by the plan of the run and the measured hardware; Ray runs it there, and runs it
again after a worker of its own has died. A run on a node stops when its lease in `sweep/commands` is gone or
stale, so it needs no message from the command.
"""
