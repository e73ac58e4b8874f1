"""Print, as JSON, the loss and the largest Q of a compiled update whose first weight is NaN.

A program of its own: the checks of shapes that tests put around every function cannot be compiled.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from tiny import begun, ticks_of, tiny_spec

torch.set_num_threads(1)
with begun(tiny_spec("learner.compile=true", *sys.argv[1:])) as training:
    while training.clock.updates == 0:
        ticks_of(training, 1)
    with torch.no_grad():
        next(training.learner.online.parameters())[0, 0, 0, 0] = torch.nan
    metrics = training.learner.update(training.replay.sample()).metrics
    sys.stdout.write(json.dumps({name: repr(float(metrics[name])) for name in ("loss", "max_q")}))
