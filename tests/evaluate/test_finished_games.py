"""Games that an interrupted evaluation has finished are not played again; the others are the same games."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tiny import CPU, tiny_spec

from atari_dqn.assembly.parts import build_network
from atari_dqn.envs.games import game_info
from atari_dqn.errors import UserError
from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.evaluation.progress import EvaluationKey, EvaluationProgress
from atari_dqn.evaluation.traces import Tracer
from atari_dqn.run.provenance import versions
from atari_dqn.run.scores import EvaluationEpisode, score_protocol

LONG = ("evaluation.max_episode_frames=2_000", "evaluation.epsilon=0.3")
KEY = EvaluationKey(
    weights_sha256="a", step=10, protocol="p", seed=1, device="cpu", torch_threads=1,
    kernels=("portable",), versions={"torch": "2.0"},
)  # fmt: skip
GAME = EvaluationEpisode(episode_return=3.0, length_frames=40, end_reason="game_over")


@pytest.mark.parametrize(
    ("kept", "workers"),
    [((0, 1, 2), 0), ((1, 4, 6), 0), ((5,), 0), pytest.param((1, 4, 6), 2, marks=pytest.mark.slow)],
    ids=str,
)
def test_missing_games_come_out_as_in_an_unbroken_evaluation(kept: tuple[int, ...], workers: int) -> None:
    spec = tiny_spec(*LONG, "system.evaluation_envs=3", f"system.evaluation_workers={workers}")
    network = build_network(spec, game_info(spec), CPU)
    unbroken = evaluate(network, spec, episodes=7)
    played: dict[int, EvaluationEpisode] = {}
    found = evaluate(
        network,
        spec,
        episodes=7,
        finished={episode: unbroken[episode] for episode in kept},
        on_finished=played.__setitem__,
    )
    assert found == unbroken
    assert sorted(played) == [episode for episode in range(7) if episode not in kept]


def test_trace_of_a_game_that_is_played_alone_is_that_of_the_whole_evaluation() -> None:
    spec = tiny_spec(*LONG)
    network = build_network(spec, game_info(spec), CPU)
    whole, alone = Tracer(), Tracer()
    games = evaluate(network, spec, episodes=5, tracer=whole)
    others = {episode: game for episode, game in enumerate(games) if episode != 3}
    evaluate(network, spec, episodes=5, finished=others, tracer=alone)
    assert alone.trace(3).actions.tolist() == whole.trace(3).actions.tolist()
    assert alone.trace(3).values.tolist() == whole.trace(3).values.tolist()


def key_here() -> EvaluationKey:
    spec = tiny_spec()
    network = build_network(spec, game_info(spec), CPU)
    protocol = score_protocol(spec, episodes=1, checkpoint="last", rom_md5="")
    return EvaluationKey.of(network, spec, step=10, protocol=protocol)


def test_games_of_other_kernels_are_those_of_another_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    here = key_here()
    monkeypatch.setattr("atari_dqn.evaluation.progress.kernels_here", lambda: ("none",))
    assert key_here() == replace(here, kernels=("none",))


def test_games_of_another_version_of_torch_are_those_of_another_evaluation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, found = key_here(), versions() | {"torch": "1.0"}
    monkeypatch.setattr("atari_dqn.evaluation.progress.versions", lambda: found)
    assert key_here() == replace(here, versions={**here.versions, "torch": "1.0"}) != here


def test_games_of_another_version_of_a_package_with_parts_are_those_of_another_evaluation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = key_here()
    monkeypatch.setattr("atari_dqn.evaluation.progress.packages_of", lambda spec: {"other-agents": "2.0"})
    assert key_here() == replace(here, versions={**here.versions, "other-agents": "2.0"}) != here


def opened(path: Path, **changes: object) -> EvaluationProgress:
    return EvaluationProgress(path, EvaluationKey(**{**KEY.__dict__, **changes}))


def kept_in(path: Path, **changes: object) -> dict[int, EvaluationEpisode]:
    with closing(opened(path, **changes)) as progress:
        return progress.finished


def test_kept_games_are_read_again(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "games")) as progress:
        progress.add(4, GAME)
    assert kept_in(tmp_path / "games") == {4: GAME}


@pytest.mark.parametrize(
    "changes",
    [
        {"weights_sha256": "b"},
        {"step": 11},
        {"protocol": "q"},
        {"seed": 2},
        {"device": "cuda"},
        {"torch_threads": 2},
        {"kernels": ()},
        {"versions": {"torch": "2.1"}},
    ],
)
def test_games_of_another_evaluation_are_not_taken_over(tmp_path: Path, changes: dict[str, object]) -> None:
    with closing(opened(tmp_path / "games")) as progress:
        progress.add(4, GAME)
    assert kept_in(tmp_path / "games", **changes) == {}


def test_games_of_another_version_of_the_format_are_not_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(opened(tmp_path / "games")) as progress:
        progress.add(4, GAME)
    monkeypatch.setattr("atari_dqn.evaluation.progress.SCHEMA_VERSION", 2)
    assert kept_in(tmp_path / "games") == {}


def test_games_are_flushed_once_five_seconds_have_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times, flushed = iter([0.0, 5.0, 5.1, 5.1, 10.0]), []
    monkeypatch.setattr("atari_dqn.evaluation.progress.monotonic", lambda: next(times))
    with closing(opened(tmp_path / "games")) as progress:
        monkeypatch.setattr(progress._file, "sync", lambda: flushed.append(max(progress.finished)))
        for episode in range(3):
            progress.add(episode, GAME)
    assert flushed == [1]


@pytest.mark.parametrize("cut", [1, 40])
def test_line_that_is_torn_costs_its_game_alone(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "games"
    with closing(opened(path)) as progress:
        progress.add(4, GAME)
        progress.add(2, GAME)
    path.write_bytes(path.read_bytes()[:-cut])
    with closing(opened(path)) as again:
        assert again.finished == {4: GAME}
        again.add(2, GAME)
    assert kept_in(path) == {4: GAME, 2: GAME}


@pytest.mark.parametrize("line", [b'{"game": "\xff"}\n', b"[" * 10_000 + b"\n", b"\0\n", b"1\n", b"{}\n"])
def test_line_that_is_no_game_is_cut_off(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "games"
    with closing(opened(path)) as progress:
        progress.add(4, GAME)
    whole = path.read_bytes()
    path.write_bytes(whole + line)
    assert kept_in(path) == {4: GAME}
    assert path.read_bytes() == whole


def test_edited_return_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "games"
    with closing(opened(path)) as progress:
        progress.add(4, GAME)
    path.write_bytes(path.read_bytes().replace(b"3.0", b"9.0"))
    assert kept_in(path) == {}


def test_evaluation_that_another_process_plays_is_refused(tmp_path: Path) -> None:
    first = opened(tmp_path / "games")
    with closing(first), pytest.raises(UserError, match="another process plays this evaluation"):
        opened(tmp_path / "games")


def test_evaluation_without_a_finished_game_leaves_no_file(tmp_path: Path) -> None:
    opened(tmp_path / "games").close()
    assert list(tmp_path.iterdir()) == []
