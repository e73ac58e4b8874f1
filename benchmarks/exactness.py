"""Which games of ale-py go on exactly as they would have, once restored in a fresh process.

One process plays an environment under Track B's rules, with random actions, and keeps its state at 20 points.
A second one, fresh, restores each state into an emulator of its own and plays 500 steps on: every frame,
reward and flag must be what the first process saw, and the state at the end too. Then the same with a frame
skip of 1, which hides nothing: a step of 4 frames shows the last two only.

Writes the JSON to --out, the table to docs/exactness.md and the games that are not exact to the package.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from atari_dqn.envs.atari import AtariShard
from atari_dqn.envs.buffers import new_batch
from atari_dqn.rng import numpy_stream
from atari_dqn.spec.games import SINGLE_PLAYER_GAMES
from atari_dqn.spec.schema import Env
from atari_dqn.spec.tracks import load_track
from atari_dqn.types import StateDict
from hardware import circumstances

import numpy as np

ROOT = Path(__file__).parents[1]
POINTS = 20
EPISODE_FRAMES = 10_000
"""Cap of an episode: deep into a game, and some points still lie before a reset."""
SEED = 1


@dataclass(frozen=True)
class Mode:
    """How an environment is played, and how far apart the points are."""

    frame_skip: int
    point_period_steps: int
    steps_on: int

    @property
    def points(self) -> range:
        """Steps after which a state is kept."""
        return range(3, 3 + POINTS * self.point_period_steps, self.point_period_steps)


MODES = {
    "steps": Mode(frame_skip=4, point_period_steps=251, steps_on=500),
    "frames": Mode(frame_skip=1, point_period_steps=101, steps_on=100),
}


def rules(mode: Mode) -> Env:
    track = load_track("B")
    values: dict[str, Any] = {key.removeprefix("env."): track[key] for key in track if key.startswith("env.")}
    env = Env(**values)
    return replace(env, frame_skip=mode.frame_skip, max_episode_frames=EPISODE_FRAMES, noop_max_frames=30)


class Player:
    """One environment of a game and the digest of all it shows."""

    def __init__(self, game: str, mode: Mode) -> None:
        self.shard = AtariShard(
            game=game,
            env=rules(mode),
            envs=range(1),
            num_envs=1,
            seed=SEED,
            stream="exactness",
            power_on_reset=False,
        )
        self.row = new_batch(1, self.shard.info.frame_shape)
        steps = mode.points[-1] + mode.steps_on
        self.actions = numpy_stream(SEED, game).integers(self.shard.info.num_actions, size=steps).tolist()

    def state(self) -> StateDict:
        return self.shard.state_dicts()[0]

    def step(self, number: int) -> str:
        self.shard.step(np.array([self.actions[number]]), self.row)
        row = self.row
        shown = (row.frame, row.reward, row.terminated, row.truncated, row.life_lost, row.first)
        return hashlib.sha256(b"".join(array.tobytes() for array in shown)).hexdigest()[:16]


def digest_of(state: StateDict) -> str:
    """Digest an environment's state, without torch: a fresh process a game should start quickly."""
    serialised = hashlib.sha256(state["emulator"]["serialised"].tobytes()).hexdigest()
    return hashlib.sha256(json.dumps({**state, "emulator": serialised}).encode()).hexdigest()


@dataclass(frozen=True)
class Record:
    """What the unbroken process saw; `later` is the digest of the state a while after each point."""

    shown: list[str]
    kept: dict[int, StateDict]
    later: dict[int, str]


def play(game: str, mode: Mode) -> Record:
    player, shown, kept, later = Player(game, mode), [], {}, {}
    player.shard.reset(player.row)
    for number in range(len(player.actions)):
        if number in mode.points:
            kept[number] = player.state()
        shown.append(player.step(number))
        if (point := number + 1 - mode.steps_on) in mode.points:
            later[point] = digest_of(player.state())
    return Record(shown, kept, later)


def differing_steps(game: str, mode: Mode, record: Record) -> list[int]:
    """Return the first step that differs, for each point from which one does."""
    found = [differing_step(game, mode, record, point) for point in mode.points]
    return [step for step in found if step is not None]


def differing_step(game: str, mode: Mode, record: Record, point: int) -> int | None:
    """Return the first step on that differs; the last where it is only the state after it."""
    player = Player(game, mode)
    player.shard.load_state_dicts([record.kept[point]])
    for step in range(mode.steps_on):
        if player.step(point + step) != record.shown[point + step]:
            return step
    return None if digest_of(player.state()) == record.later[point] else mode.steps_on - 1


@dataclass(frozen=True)
class Result:
    """The first step that differs for each point from which one does, under each mode."""

    game: str
    differing_steps: dict[str, list[int]]

    @property
    def exact(self) -> bool:
        return not any(self.differing_steps.values())

    def restored(self, mode: str) -> str:
        return f"{POINTS - len(self.differing_steps[mode])} of {POINTS}"


def in_fresh_process(function: Callable[..., Any], *arguments: object) -> Any:
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as process:
        return process.submit(function, *arguments).result()


def all_records(game: str) -> dict[str, Record]:
    return {name: play(game, mode) for name, mode in MODES.items()}


def all_differing_steps(game: str, records: dict[str, Record]) -> dict[str, list[int]]:
    return {name: differing_steps(game, mode, records[name]) for name, mode in MODES.items()}


def measure(game: str) -> Result:
    records = in_fresh_process(all_records, game)
    return Result(game, in_fresh_process(all_differing_steps, game, records))


def table(results: Sequence[Result], where: dict[str, Any]) -> str:
    inexact = [result.game for result in results if not result.exact]
    rows = "\n".join(
        f"| `{result.game}` | {'yes' if result.exact else '**no**'} "
        f"| {result.restored('steps')} | {result.restored('frames')} |"
        for result in results
    )
    return f"""# Which games resume exactly

Made by `python benchmarks/exactness.py`, {where["date"][:10]}, ale-py {where["versions"]["ale-py"]}; the
steps that differ are in [results/exactness.json](results/exactness.json).

At {POINTS} points of a random game, under Track B's rules with no-op starts, the state of an environment is
saved and restored in a fresh process, which continues the game: for {MODES["steps"].steps_on} steps with the
tracks' frame skip of 4, where the last two frames of each step are compared, and for
{MODES["frames"].steps_on} steps with a frame skip of 1, where every frame is compared. A game is exact if,
from every point, all frames, rewards and flags and the final state equal those of the uninterrupted process.
Episodes end after {EPISODE_FRAMES:,} frames, so that the steps include resets. If all frames are the same and
only the final state differs, the JSON lists the last step.

**{len(results) - len(inexact)} of {len(results)} games are exact.** Of the others
({", ".join(inexact) or "none"}) `dqn resume`, `dqn verify` and `dqn doctor` say that a resumed run may differ
from an uninterrupted one.

| game | exact | points, frame skip 4 | points, frame skip 1 |
|---|---|---|---|
{rows}
"""


def package_table(results: Sequence[Result]) -> str:
    games = "".join(
        f'{result.game} = "{result.restored("steps")} at a frame skip of 4, '
        f'{result.restored("frames")} at 1"\n'
        for result in results
        if not result.exact
    )
    return (
        "# Games that do not go on exactly after a restore, and from how many of the points tried they did.\n"
        "# Made by benchmarks/exactness.py; docs/exactness.md has every game.\n"
        f'ale_py = "{version("ale-py")}"\n\n[games]\n{games}'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--games", nargs="*", default=SINGLE_PLAYER_GAMES)
    arguments = parser.parse_args()
    results = []
    for game in arguments.games:
        results.append(measure(game))
        outcome = "exact" if results[-1].exact else f"not exact: {results[-1].differing_steps}"
        print(f"{game:20} {outcome}", flush=True)
    where = circumstances()
    arguments.out.write_text(
        json.dumps({"games": [asdict(each) for each in results], **where}, indent=2) + "\n"
    )
    if tuple(arguments.games) == SINGLE_PLAYER_GAMES:
        (ROOT / "docs/exactness.md").write_text(table(results, where))
        (ROOT / "atari_dqn/envs/inexact_games.toml").write_text(package_table(results))


if __name__ == "__main__":
    main()
