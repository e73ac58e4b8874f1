"""Search for the best values of a spec's keys: trials, each of them a few runs of the sweep's runner.

    fields, space, scores → tune → tune_file → combinations    a tune file, checked; all faults at once
    folder                                                     a tune in its folder: its record, its runs
    study                                                      Optuna: suggest values, record results
    trials, evaluations, pruning → tuner                       run trials, and decide how they end
    ranking, results, table, plot                              the outcome: specs, CSV, text, PNG

A trial is a set of values for the keys of the space. Its members are the runs of all games and seeds with
these values. The state of a tune is its folder: the record, Optuna's log of trials, the run directories. A
trial is written to the log as a whole when it begins, and once more when it ends; all in between is read
from its runs. A command that goes on therefore makes the decisions that the earlier one would have made.

`scheduler.Workers` is all that a tune needs of a scheduler: start members, stop members, report those that
ended. `site_workers.SiteWorkers` implements it.
"""
