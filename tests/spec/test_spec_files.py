"""Errors of files that are not TOML, and of invalid `--set` options."""

import os
from pathlib import Path

import pytest

from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.loader import load_spec

BAD_FILES = {
    "empty": (b"", "is empty; expected at least track, game and seed"),
    "blank": (b" \n\t\n", "is empty"),
    "NUL byte": (b'track = "A"\x00\n', "contains a NUL byte at offset 11"),
    "binary": (bytes(range(1, 256)), "is not UTF-8 text (byte 0x80 at offset 127)"),
    "Latin-1": ('# für\ntrack = "A"\n'.encode("latin-1"), "byte 0xfc at offset 3"),
    "broken line": (b'track = "A"\nseed =\n', "line 2 is not TOML: found `seed =`, expected `KEY = VALUE`"),
    "cut off": (b'track = "A', 'line 1 is not TOML: found `track = "A`, expected'),
    "Python's True": (
        b"[toggles]\ndouble = True\n",
        "line 2 is not TOML: found `double = True`, expected `KEY = VALUE` or `[SECTION]`; "
        "did you mean `double = true`?",
    ),
    "number with a unit": (
        b"[training]\ntotal_frames = 2.4M # short\n",
        "found `total_frames = 2.4M # short`, expected `KEY = VALUE` or `[SECTION]`; "
        "did you mean `total_frames = 2_400_000 # short`?",
    ),
    "number with commas": (b"seed = 50,000\n", "did you mean `seed = 50_000`?"),
    "no quotes": (
        b'track = "A"\ngame = pong # the first\n',
        "line 2 is not TOML: found `game = pong # the first`, expected text in quotes; "
        'did you mean `game = "pong" # the first`?',
    ),
    "one quote": (b'game = "pong\n', 'expected text in quotes; did you mean `game = "pong"`?'),
    "key twice": (
        b"seed = 1\n[replay]\n# seed = 5\nprefill_steps = 3000\nseed = 2\n[env]\nprefill_steps = 1\n"
        b"[replay.more]\nseed = [1,\n2]\nseed = 4\n",
        "line 11 repeats `replay.more.seed` of line 9; expected each key once: remove one of the two",
    ),
    "key twice, the second of several lines": (
        b"seeds = 6_000\n\nseeds = [1,\n2]\n",
        "line 3 repeats `seeds` of line 1; expected each key once: remove one of the two",
    ),
    "section twice": (
        b"[env]\nx = 1\n[replay]\n[env] # again\n",
        "line 4 repeats [env] of line 1; expected each section once: join the two",
    ),
    "section twice, with a name in quotes": (
        b'[methods."lr = 1e-4"]\n[methods.base]\ndouble = true\n[methods."lr = 1e-4"]\n',
        'line 4 repeats [methods."lr = 1e-4"] of line 1; expected each section once: join the two',
    ),
    "section after a dotted key of it": (b"env.x = 1\n[env]\n", "line 2 repeats [env] of line 1; expected"),
    "key twice, once in quotes": (
        b'seed = 1\n"seed" = 2\n',
        'line 2 repeats `"seed"` of an earlier line; expected',
    ),
    "open bracket": (
        b"seeds = [1,\n2\nname = 3\n",
        "line 3 is not TOML: found `name = 3` before the end of the value above it; "
        "expected a bracket or quotes that close it",
    ),
    "endless number": (b"seed = " + b"9" * 5000, "thousands of digits"),
    "too deep": (b"seed = " + b"[" * 10_000, "nested too deeply"),
    "too large": (b"#" * 1_000_001, "is larger than 1,000,000 bytes"),
}


def fault_of(path: Path, *overrides: str) -> str:
    with pytest.raises(SpecError) as caught:
        load_spec(path, overrides)
    assert len(caught.value.faults) == 1, str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("content", "phrase"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_file_that_is_not_toml_gives_an_error_of_one_line(tmp_path: Path, content: bytes, phrase: str):
    path = tmp_path / "run.toml"
    path.write_bytes(content)
    message = fault_of(path)
    assert message.startswith(f"{path}: ")
    assert phrase in message
    assert "\n" not in message


def test_error_of_a_missing_file_suggests_a_file_of_similar_name(tmp_path: Path):
    (tmp_path / "pong_trackA.toml").write_text("")
    message = fault_of(tmp_path / "pong_trakA.toml")
    assert message.endswith('no such file; expected a TOML spec; did you mean "pong_trackA.toml"?')


def test_a_directory_is_not_a_spec(tmp_path: Path):
    assert fault_of(tmp_path) == f"{tmp_path}: is a directory; expected a TOML spec"


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in fault_of(tmp_path / "pipe")


def test_path_that_the_system_refuses_is_a_spec_error(tmp_path: Path):
    assert "cannot be read: file name too long" in fault_of(tmp_path / ("x" * 300))


def test_a_byte_order_mark_is_allowed(tmp_path: Path):
    path = tmp_path / "run.toml"
    path.write_bytes(b'\xef\xbb\xbftrack = "A"\ngame = "pong"\nseed = 1\n')
    assert load_spec(path).spec.game == "pong"


BAD_OVERRIDES = {
    "no equals sign": (
        "learner.batch_size",
        "found 'learner.batch_size', expected KEY=VALUE",
    ),
    "no key": ("=5", "expected KEY=VALUE"),
    "no value": ("game=", "expected KEY=VALUE"),
    "two values": (
        "learner.discount=1 2",
        'learner.discount: found "1 2", expected a number from 0.0 to 1.0',
    ),
    "two lines": ("seed=1\ntrack='A'", "seed: found \"1\\ntrack='A'\", expected an integer at least 0"),
    "open string": (
        'game="pong',
        'expected a ROM id of ale-py, such as "pong" or "ms_pacman"; did you mean "pong"?',
    ),
    "unknown key": (
        "learner.bach_size=5",
        'learner.bach_size: unknown key; did you mean "learner.batch_size"?',
    ),
    "three parts": ("env.x.y=5", "env.x.y: unknown section [env.x]"),
    "whole section": (
        "env={environments=2}",
        "env: found a table, expected a section, its keys set one by one",
    ),
    "empty section": ("learner={}", "learner: found a table, expected a section, its keys set one by one"),
    "half an integer": (
        "learner.batch_size=1.5",
        "--set: learner.batch_size: found 1.5, expected an integer at least 1",
    ),
    "half of one, in thousands": (
        "training.total_frames=1.2345k",
        'found "1.2345k", expected an integer',
    ),
    "Python's True": ("toggles.double=True", 'found "True", expected true or false; did you mean true?'),
    "wrong type": ("learner.batch_size=3.7", "learner.batch_size: found 3.7, expected an integer at least 1"),
}


@pytest.mark.parametrize(("override", "phrase"), BAD_OVERRIDES.values(), ids=BAD_OVERRIDES.keys())
def test_invalid_override_gives_an_error_of_one_line(write_spec, override: str, phrase: str):
    message = fault_of(write_spec(), override)
    assert message.startswith("--set: ")
    assert phrase in message


def test_override_values_are_toml_or_bare_strings(write_spec):
    overrides = [
        "game=breakout",
        'env.resize="bilinear"',
        "replay.device=cpu",
        "learner.max_abs_reward=inf",
        "training.total_frames = 1_000_000",
        "toggles.double=true",
    ]
    spec = load_spec(write_spec(), overrides).spec
    assert (spec.game, spec.env.resize, spec.replay.device) == ("breakout", "bilinear", "cpu")
    assert spec.learner.max_abs_reward == float("inf")
    assert spec.training.total_frames == 1_000_000
    assert spec.toggles.double is True


def test_last_of_two_overrides_of_a_key_counts(write_spec):
    assert load_spec(write_spec(), ["seed=2", "seed=3"]).spec.seed == 3


def test_override_can_set_a_key_that_the_file_lacks(write_spec):
    assert load_spec(write_spec(base='track = "A"\nseed = 1\n'), ["game=qbert"]).spec.game == "qbert"


@pytest.mark.parametrize(("text", "frames"), [("2.4M", 2_400_000), ("1e6", 1_000_000), ("500k", 500_000)])
def test_override_of_an_integer_may_be_written_as_a_large_number(write_spec, text: str, frames: int):
    spec = load_spec(write_spec(), [f"training.total_frames={text}"]).spec
    assert spec.training.total_frames == frames
    assert type(spec.training.total_frames) is int


def test_override_of_a_number_may_be_written_as_a_large_number(write_spec):
    spec = load_spec(write_spec(), ["gates.max_grad_norm=20k", "learner.discount=0.5"]).spec
    assert (spec.gates.max_grad_norm, spec.learner.discount) == (20_000.0, 0.5)
