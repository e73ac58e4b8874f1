"""Whatever value is changed in a checkpoint that is sealed again: it is refused by name, or does no harm."""

import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tampering import DELETED, POISONS, Place, places_once, tamper_manifest, tamper_state
from tiny import CPU, run

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.run.checkpoint.bookkeeping import Bookkeeping
from atari_dqn.run.directory import RunDirectory
from atari_dqn.telemetry.events import Event, Row
from atari_dqn.train import launch

TAMPER = {"manifest.json": tamper_manifest, "state.json": tamper_state}
NOT_SEALED_AGAIN = {"manifest_sha256", "files"}
"""Keys of a manifest that sealing makes again."""


class EnoughError(Exception):
    """The run has gone on for long enough."""


class StopsAtStep280:
    def handle(self, event: Event) -> None:
        if isinstance(event, Row) and int(event.values["step"]) >= 280:
            raise EnoughError

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "run"
    run(path, "training.total_frames=800", "toggles.prioritized=true", "track=B", "system.workers=0")
    return path


@pytest.fixture
def copied(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "run", symlinks=True)


def checkpoint_of(path: Path) -> Path:
    return path / "checkpoints/step_000000200"


def mutations(whole: Path, poisons: list[str]) -> list[tuple[str, Place, str]]:
    return [
        (name, place, poison)
        for name in TAMPER
        for place in places_once(json.loads((checkpoint_of(whole) / name).read_text()))
        for poison in poisons
        if place[0] not in NOT_SEALED_AGAIN
    ]


def resume_tampered(whole: Path, copy: Path, name: str, place: Place, value: Any) -> str | None:
    """Resume a tampered copy and return its error message; None where it goes on."""
    shutil.copytree(whole, copy, symlinks=True)
    TAMPER[name](checkpoint_of(copy), place, value)
    try:
        launch.resume(RunDirectory.open(copy), device=CPU, views=[StopsAtStep280()], total_frames=1_600)
    except (DamagedError, UserError) as refusal:
        return str(refusal)
    except EnoughError:
        pass
    finally:
        shutil.rmtree(copy)
    return None


def assert_each_is_refused_or_harmless(whole: Path, copy: Path, chosen: list[tuple[str, Place, str]]) -> None:
    for name, place, poison in chosen:
        value = DELETED if poison == "deleted" else POISONS[poison]
        try:
            resume_tampered(whole, copy, name, place, value)
        except Exception as error:
            raise AssertionError(f"{name}: {place} as {poison}") from error


def test_some_tampered_values_are_each_refused_or_harmless(whole: Path, tmp_path: Path) -> None:
    every = mutations(whole, [*POISONS, "deleted"])
    assert_each_is_refused_or_harmless(whole, tmp_path / "run", random.Random(29).sample(every, 5))


@pytest.mark.slow
@pytest.mark.parametrize("poison", [*POISONS, "deleted"])
def test_many_tampered_values_are_each_refused_or_harmless(whole: Path, tmp_path: Path, poison: str) -> None:
    every = mutations(whole, [poison])
    assert_each_is_refused_or_harmless(whole, tmp_path / "run", random.Random(poison).sample(every, 15))


REFUSALS = [
    ("manifest.json", "bookkeeping.light.passed", "12", r"\.light\.passed: expected `int`"),
    ("manifest.json", "bookkeeping.watch.loss", [1], r"\.watch\.loss: expected `object`"),
    ("manifest.json", "bookkeeping.total_frames", -3, r"\.total_frames: expected `int` >= 1"),
    ("manifest.json", "bookkeeping.score_protocol", 5, r"\.score_protocol: expected `str \| null`"),
    ("manifest.json", "step", True, r": expected `int`, got `bool`"),
    ("state.json", "clock.steps", None, r": found None, expected an integer"),
    ("state.json", "clock.updates", DELETED, r": missing"),
    ("state.json", "reporter.recent", [[1.0, "x"]], r"\.0: found a list, expected values like"),
    ("state.json", "lanes.lanes", [], r": found a list, expected a list of 1"),
    ("state.json", "policy.stream", [], r": found a list, expected a table"),
    ("state.json", "replay.first_row", 0.5, r": found 0.5, expected an integer"),
]


@pytest.mark.fault("H05")
@pytest.mark.parametrize(("name", "key", "value", "message"), REFUSALS)
def test_value_of_another_type_is_refused_by_file_and_key(
    whole: Path, tmp_path: Path, name: str, key: str, value: Any, message: str
) -> None:
    refusal = resume_tampered(whole, tmp_path / "run", name, tuple(key.split(".")), value)
    assert refusal is not None
    (first, *_) = refusal.splitlines()
    assert re.search(rf"step_000000200/{name}: .*{message}", first)
    assert key.split(".")[0] in first


def test_every_key_of_the_bookkeeping_has_a_type(whole: Path) -> None:
    bookkeeping = json.loads((checkpoint_of(whole) / "manifest.json").read_text())["bookkeeping"]
    typed = msgspec.to_builtins(msgspec.convert(bookkeeping, Bookkeeping))
    assert json.loads(json.dumps(typed)) == bookkeeping


def test_checkpoint_that_was_just_refused_is_not_the_one_offered(whole: Path, tmp_path: Path) -> None:
    refusal = resume_tampered(whole, tmp_path / "run", "state.json", ("clock", "updates"), "word")
    assert refusal is not None
    assert "--checkpoint step_000000200" not in refusal
    assert "--checkpoint step_000000150" in refusal
