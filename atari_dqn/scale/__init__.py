"""Many runs as one thing: sweeps and tunes.

    sweep_file, axes, cases → members → opening   a sweep file, its complete specs, its record on disk
    room, plan                                    needs of runs, room of this machine, what fits at once
    runner, training_process, takeover            one member: a lease, a supervised `dqn train`/`dqn resume`
    scheduler                                     members in order, by workers that start and stop them
    site_workers → local, on_ray                  the workers: of this machine, of the nodes of a Ray cluster
    tuning                                        a search for values: trials, whose members are such runs;
                                                  trained by the same workers

The state of a sweep is its folder (`run.sweep.folder`): the run directories, and one lease for each run that
a process works on (`run.leases`). Nothing durable is anywhere else.

Another scheduler, such as one that adds members, needs three calls and nothing of `local` or `on_ray`:

    opened = open_sweep(load_sweep(path), folder, device="cpu", hardware=find_sweep_hardware(folder))
    runner = Runner(folder=opened.folder, owner=Owner.current(), stop=Event(), report=print)
    outcome = runner.run(member, placement, stale=None)

`Runner.run` blocks until the member has ended and may be called from any thread or process that has the
folder; everything it needs is the folder's path, the member (`Member`, plain values) and the `Placement`
(device, cores, threads of torch). It takes the lease, starts or resumes the training in a subprocess, renews
the lease, resumes after crashes with growing pauses, and releases the lease. `Outcome.kind`:

    finished   the summary is on disk; a further call returns at once
    failed     halted, damaged, invalid, or crashed over and over: recorded in the folder, not to be retried
    stopped    `stop` was set: a checkpoint was saved
    held       another process holds the lease: observe it with `LeaseObserver`, and call again with
               `stale=observer.leases[name]` once `observer.is_stale(name)`
    lost       the lease was stolen: the training has been killed, and another process goes on

`shared_folder` has the probe by which hosts check that they have the same folder.
"""
