"""Sweeps on a Ray cluster, which needs the extra `ray`.

    address         which clusters may be joined, and what must be set for it; imports no Ray
    local_cluster   a cluster on this machine for one sweep: the process that starts it and ends all of it
    cluster         a joined cluster: its nodes, their hardware and versions, whether it still answers
    command         the lease of a command, without which the runs that it starts stop
    node            what a node reports about itself, and how it trains a member: plain values in and out
    site            the nodes with what is free on each, and the tasks that run there
    workers         starts and stops members there; `scale.scheduler` runs a sweep with them

Ray carries paths, numbers and text; the state of a sweep is its folder, as on one machine. The scheduler
gives each run its part of a node, by the plan of the run and the measured hardware; Ray runs it there, and
runs it again after a worker of its own has died. A run on a node stops when the lease of the command in
`sweep/commands` is gone or stale, so it needs no message from the command.
"""
