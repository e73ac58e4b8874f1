"""What the learner's receiving side takes and gives: Ape-X's messages from 2 to 256 simulated actors.

Real messages (50 steps of Pong, 84 × 84, with first priorities) come from threads of at most four processes,
each at 139 frames/s, Ape-X's rate of an actor. The learner reads, checks, stores and orders as in a run, and
makes no updates. Reported: messages/s, MB/s, and the share of a core that receiving takes. Then the actors
send as quickly as the pipes take it: transitions per second of the receiving process's own time on one core,
with plain and with compressed messages. Last, what codecs make of a message. Writes JSON to --out.
"""

from __future__ import annotations

import argparse
import json
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from atari_dqn.actors.limiter import Limiter
from atari_dqn.actors.message import encode
from atari_dqn.actors.supervised import SupervisedActors
from atari_dqn.clock import Every, steps_to_frames
from atari_dqn.envs.games import game_info
from atari_dqn.spec.schema import Spec
from atari_dqn.train.build import assemble
from atari_dqn.train.free_running import FreeRunningTraining
from atari_dqn.train.learning import Learning
from hardware import circumstances
from simulated_actors import SimulatedCarrier, played
from spec_here import load_spec_here

import torch
import zstandard

APEX = Path(__file__).parents[1] / "runs" / "apex.toml"
FRAMES_PER_SECOND = 139.0
"""Of one of Ape-X's 360 actors. Horgan et al. (2018): 50,000 in all."""
MESSAGE_STEPS = 50
"""Steps in one of its messages."""
TRANSITIONS_PER_SECOND = 12_500
"""What they make together: the learner has to receive as many."""
Codec = Callable[[bytes], bytes]
CODECS: Mapping[str, tuple[Codec, Codec]] = {
    "zlib 1": (partial(zlib.compress, level=1), zlib.decompress),
    "zstandard 1": (partial(zstandard.compress, level=1), zstandard.decompress),
    "zstandard -5": (partial(zstandard.compress, level=-5), zstandard.decompress),
}


def spec_of(actors: int) -> Spec:
    """Return Ape-X's spec with some actors, and a replay that a small machine holds."""
    overrides = [f"actors.processes={actors}", f"env.num_envs={actors}", f"replay.capacity_steps={300 * 256}"]
    return load_spec_here(APEX, [*overrides, "system.actors_per_core=1000", "learner.threads=1"]).spec


@contextmanager
def receiver(spec: Spec, carrier: SimulatedCarrier) -> Iterator[tuple[Learning, Callable[[], None]]]:
    """Yield a learner that makes no updates, and a function that receives its next message."""
    with closing(
        assemble(spec, torch.device("cpu"), lambda spec: SupervisedActors(spec, game_info(spec), carrier))
    ) as training:
        assert isinstance(training, FreeRunningTraining)
        training.limiter = Limiter(samples_per_insert=1.0, min_size=2**60, error_buffer=0.0)  # no updates
        training.begin()
        iterations = training.iterations()
        prepared = Every(period=spec.learner.update_period_steps)

        def receive() -> None:
            list(training.rows(next(iterations)))
            if training.replay.num_transitions and prepared.due(training.clock.steps):
                training.replay.prepare(training.schedule_frames)  # the priorities of what was stored

        yield training, receive


def received(
    actors: int, *, frames_per_second: float | None, processes: int, seconds: float, compressed: bool = True
) -> dict[str, Any]:
    """Receive for some seconds, after the first message of every actor."""
    spec = spec_of(actors)
    carrier = SimulatedCarrier(
        spec,
        actors=actors,
        processes=processes,
        frames_per_second=frames_per_second,
        compressed=compressed,
    )
    with receiver(spec, carrier) as (training, receive):
        while carrier.messages < actors:
            receive()
        messages, size, steps = carrier.messages, carrier.bytes, training.clock.steps
        began, processor = time.perf_counter(), time.process_time()
        while time.perf_counter() - began < seconds:
            receive()
        wall, own = time.perf_counter() - began, time.process_time() - processor
        transitions = training.clock.steps - steps
    return {
        "actors": actors,
        "compressed": compressed,
        "offered_transitions_per_second": frames_per_second
        and actors * frames_per_second / steps_to_frames(1, frame_skip=spec.env.frame_skip),
        "transitions_per_second": transitions / wall,
        "messages_per_second": (carrier.messages - messages) / wall,
        "megabytes_per_second": (carrier.bytes - size) / wall / 1e6,
        "core_share": own / wall,
        "transitions_per_core_second": transitions / own,
    }


def codec_costs(seconds: float) -> dict[str, dict[str, float]]:
    """Measure the size of a message under each codec, and the milliseconds of making and reading it."""
    message = encode(played(spec_of(2))[1])
    found = {"none": {"bytes": float(len(message))}}
    for name, (compress, decompress) in CODECS.items():
        packed = compress(message)
        found[name] = {
            "bytes": len(packed),
            "milliseconds_to_compress": _milliseconds(partial(compress, message), seconds),
            "milliseconds_to_decompress": _milliseconds(partial(decompress, packed), seconds),
        }
    return found


def _milliseconds(work: Any, seconds: float) -> float:
    began = time.perf_counter()
    for repetitions in count(1):
        work()
        if time.perf_counter() - began > seconds:
            return (time.perf_counter() - began) / repetitions * 1e3
    raise AssertionError


def decision(flooded: list[dict[str, Any]], costs: Mapping[str, Mapping[str, float]]) -> str:
    """Say whether messages are sent compressed."""
    plain, packed = sorted(flooded, key=lambda each: each["compressed"])
    saved = 1 - costs["zstandard 1"]["bytes"] / costs["none"]["bytes"]
    slower = 1 - packed["transitions_per_core_second"] / plain["transitions_per_core_second"]
    bytes_per_transition = costs["none"]["bytes"] / MESSAGE_STEPS
    gigabits = 8 * bytes_per_transition * TRANSITIONS_PER_SECOND / 1e9
    return (
        f"compression saves {saved:.0%} of the bytes and {'costs' if slower > 0 else 'adds'} "
        f"{abs(slower):.0%} of the learner's receiving speed; plain, Ape-X's rate is {gigabits:.2f} Gbit/s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--actors", type=int, nargs="+", default=(2, 4, 16, 64, 256))
    parser.add_argument("--processes", type=int, default=4, help="of the simulated actors, at most")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    options = parser.parse_args()
    torch.set_num_threads(1)
    common = {"processes": options.processes, "seconds": options.seconds}
    paced: list[dict[str, Any]] = []
    flooded: list[dict[str, Any]] = []
    for actors in options.actors:
        paced.append(received(actors, frames_per_second=FRAMES_PER_SECOND, **common))
        print(paced[-1], flush=True)
    for compressed in (False, True):
        flooded.append(received(16, frames_per_second=None, compressed=compressed, **common))
        print(flooded[-1], flush=True)
    codecs = codec_costs(options.seconds / 10)
    result = {
        **circumstances(),
        "settings": common,
        "target_transitions_per_second": TRANSITIONS_PER_SECOND,
        "paced": paced,
        "flooded": flooded,
        "codecs": codecs,
        "decision": decision(flooded, codecs),
    }
    print(result["decision"])
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
