"""Wrong input is refused before torch is imported, which takes seconds."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from atari_dqn.run.directory import RunDirectory

SPEC = 'track = "A"\ngame = "pong"\nseed = 1\n'

WRONG = {
    "train, no spec": ["train", "absent.toml"],
    "train, key": ["train", "my.toml", "--set", "learner.batch_sise=32"],
    "train, value": ["train", "my.toml", "--set", "learner.batch_size=0"],
    "train, values that do not fit": [
        "train",
        "my.toml",
        "--set",
        "replay.prefill_steps=2_000_000",
    ],
    "train, device": ["train", "my.toml", "--device", "abacus"],
    "train, sink": ["train", "my.toml", "--sink", "smoke"],
    "train, folder that is there": ["train", "my.toml", "--run-dir", "run"],
    "train, folder below a file": ["train", "my.toml", "--run-dir", "my.toml/deep/run"],
    "train, no command to notify": ["train", "my.toml", "--notify", " "],
    "train, folder like an option": ["train", "my.toml", "--run-dir", "-x", "--device", "cuda:99"],
    "train, device of a plan": ["train", "my.toml", "--plan", "--device", "abacus"],
    "train, options of a start with a plan": [
        "train",
        "my.toml",
        "--plan",
        "--plain",
        "--sink",
        "parquet",
        "--notify",
        "true",
    ],
    "resume, no run": ["resume", "absent"],
    "resume, folder that is no run": ["resume", "run/checkpoints"],
    "resume, device": ["resume", "run", "--device", "abacus"],
    "resume, threads": ["resume", "run", "--threads", "1000000"],
    "resume, what is later than nothing": ["resume", "run", "--discard-later"],
    "eval, no run": ["eval", "absent"],
    "eval, no checkpoint": ["eval", "run/checkpoints/step_000000001"],
    "eval, games": ["eval", "run", "--episodes", "0"],
    "eval, more games than fit memory": ["eval", "run", "--episodes", "99999999999"],
    "eval, protocol": ["eval", "run", "--protocol", "classical"],
    "eval, device": ["eval", "run", "--device", "tpu"],
    "play, seed of an agent": ["play", "run", "--seed", "3"],
    "play, toy game": ["play", "--game", "catch"],
    "play, seed of more than 64 bits": ["play", "--game", "pong", "--seed", "99999999999999999999"],
    "record, no run": ["record", "absent"],
    "record, nothing": ["record"],
    "record, no folder": ["record", "run", "-o", "absent/deep/pong.mp4"],
    "record, no video": ["record", "run", "-o", "pong.avi"],
    "record, best of too few": ["record", "run", "--episodes", "3", "--best-of", "2"],
    "record, more games than fit memory": ["record", "run", "--best-of", "99999999999"],
    "record, no recording": ["record", "--replay", "absent.mp4"],
    "record, replay of nothing": ["record", "--replay", ""],
    "record, replay of the folder": ["record", "--replay", "."],
    "record, replay with another option": ["record", "--replay", "pong.mp4", "--episodes", "2"],
    "verify, no run": ["verify", "absent"],
    "verify, frames": ["verify", "run", "--frames", "none"],
    "verify, device": ["verify", "run", "--device", "tpu"],
    "bench, no spec": ["bench", "absent.toml"],
    "bench, key": ["bench", "my.toml", "--set", "learner.batch_sise=3"],
    "bench, seconds": ["bench", "my.toml", "--seconds", "0"],
    "bench, device": ["bench", "my.toml", "--device", "tpu"],
    "compare, no run": ["compare", "absent"],
    "compare, frames": ["compare", "run", "--at", "soon"],
    "compare, score": ["compare", "run", "--to-score", "high"],
    "compare, table": ["compare", "run", "--human-table", "mine"],
    "compare, no folder": ["compare", "run", "--json", "absent/x.json"],
    "watch, no run": ["watch", "absent", "--once"],
    "watch, seconds": ["watch", "run", "--every", "0"],
    "dashboard, no folder": ["dashboard", "absent"],
    "dashboard, no address": ["dashboard", "absent", "--host", ""],
    "dashboard, port": ["dashboard", ".", "--port", "0"],
    "spec show, no spec": ["spec", "show", "absent.toml"],
    "spec check, value": ["spec", "check", "my.toml", "--set", "toggles.double=1"],
    "spec diff, no spec": ["spec", "diff", "my.toml", "absent.toml"],
    "sweep, folder like an option": ["sweep", "absent.toml", "--folder", "-x"],
    "doctor, argument": ["doctor", "me"],
}

SAID = {
    "train, no spec": "absent.toml: no such file",
    "train, key": 'did you mean "learner.batch_size"',
    "train, value": "learner.batch_size",
    "train, values that do not fit": "replay.capacity_steps",
    "train, device": "--device: found 'abacus'",
    "train, sink": "smoke",
    "train, folder that is there": "exists and is never overwritten",
    "train, folder below a file": "my.toml/deep/run: my.toml is a file; name another directory",
    "train, no command to notify": "--notify: found no command, expected a shell command",
    "train, folder like an option": "--run-dir: found '-x', which other commands would take for an option",
    "train, device of a plan": "--device: found 'abacus'",
    "train, options of a start with a plan": "--plan: expected without --plain, --sink, --notify: it starts",
    "sweep, folder like an option": "--folder: found '-x'",
    "record, replay of nothing": "--replay: found '.', expected a video with its recording next to it",
    "record, replay of the folder": "--replay: found '.', expected a video with its recording next to it",
    "resume, no run": "'absent': not found",
    "resume, folder that is no run": "is not a run directory",
    "resume, device": "--device: found 'abacus'",
    "resume, threads": "--threads: found 1000000, expected at most",
    "resume, what is later than nothing": "--discard-later: expected with --checkpoint",
    "play, toy game": '--game: found "catch", a toy game, expected a ROM id of ale-py, such as "pong"',
    "play, seed of more than 64 bits": "--seed: found '99999999999999999999', expected an integer from 0",
    "dashboard, no address": "--host: found no text, expected an address, such as 127.0.0.1",
    "play, seed of an agent": "--seed: expected with --game",
}

PROGRAM = """
import contextlib, io, json, sys
from atari_dqn.cli.app import main

def refused(arguments):
    sys.argv = ["dqn", *arguments]
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            main()
        except SystemExit as ended:
            return {"code": ended.code, "said": said.getvalue(), "torch": "torch" in sys.modules}

print(json.dumps([refused(arguments) for arguments in json.loads(sys.stdin.read())]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a spec and a run that has no checkpoint yet."""
    folder = tmp_path_factory.mktemp("folder")
    (folder / "my.toml").write_text(SPEC)
    RunDirectory.create(folder / "run", SPEC, "d1g3st", {})
    return folder


@pytest.fixture(scope="module")
def refusals(folder: Path) -> dict[str, dict[str, Any]]:
    """Exit code, message and imports of torch for each wrong input, all run in one fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(list(WRONG.values())),
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    return dict(zip(WRONG, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_refused_before_torch_is_imported(
    name: str, refusals: dict[str, dict[str, Any]]
) -> None:
    refusal = refusals[name]
    assert (refusal["code"], refusal["torch"]) == (2, False)
    assert refusal["said"].startswith("error: ")


@pytest.mark.parametrize(("name", "says"), SAID.items(), ids=SAID)
def test_refusal_says_what_is_wrong(name: str, says: str, refusals: dict[str, dict[str, Any]]) -> None:
    assert says in refusals[name]["said"]


def test_refusals_leave_nothing_behind(folder: Path, refusals: dict[str, dict[str, Any]]) -> None:
    assert sorted(path.name for path in folder.rglob("*")) == [
        "checkpoints", "my.toml", "provenance.json", "run", "spec.toml",
    ]  # fmt: skip


def test_video_into_no_folder_is_refused_as_other_outputs_are(refusals: dict[str, dict[str, Any]]) -> None:
    assert refusals["record, no folder"]["said"] == (
        "error: absent/deep/pong.mp4: the folder absent/deep does not exist; make it, or name another file\n"
    )
