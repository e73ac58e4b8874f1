"""In complete runs with a fault the right gate halts the run in time, with a diagnostic bundle."""

import csv
import json
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tiny import CPU, FEW_STEPS, TINY_CATCH, begun, run, ticks_of, tiny_spec

from atari_dqn.cli.app import main
from atari_dqn.errors import HaltedError, InterruptedRunError
from atari_dqn.minibatch import Minibatch
from atari_dqn.run.checkpoint.catalog import read_catalog
from atari_dqn.run.checkpoint.state_tree import tree_digest
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.scores import EvaluationScore
from atari_dqn.telemetry.events import Event, Row
from atari_dqn.train import health, launch
from atari_dqn.train.build import assemble
from atari_dqn.train.health import dead_unit_share
from atari_dqn.train.training import Training

BLOWN_UP = (
    "training.total_frames=1200", "optimizer.learning_rate=10", "learner.loss=mse",
    "learner.update_period_steps=1", "evaluation.light_period_frames=9999",
    "evaluation.full_period_frames=400",
)  # fmt: skip
"""One step throws the weights so far that no gradient after it is finite."""


def gate_events(path: Path) -> list[tuple[str, str]]:
    lines = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
    return [(line["data"]["gate"], line["data"]["state"]) for line in lines if line["kind"] == "gate"]


def bundle_of(path: Path) -> Path:
    (bundle,) = (path / "diagnostics").iterdir()
    return bundle


def updates_of(bundle: Path) -> list[dict[str, float]]:
    with (bundle / "updates.csv").open() as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


@pytest.fixture
def spoiled(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Training], None]], None]:
    """Applies a function that introduces a fault to every training that is assembled."""

    def use(spoil: Callable[[Training], None]) -> None:
        def spoiled_assemble(*args) -> Training:
            training = assemble(*args)
            spoil(training)
            return training

        monkeypatch.setattr(launch, "assemble", spoiled_assemble)

    return use


def reward_nan_from_step_120(training: Training) -> None:
    recv = training.recv

    def spoiled_recv():
        step = recv()
        return replace(step, reward=step.reward * np.nan) if training.clock.steps >= 120 else step

    training.recv = spoiled_recv


def zero_network(training: Training) -> None:
    with torch.no_grad():
        for weights in training.learner.online.parameters():
            weights.zero_()
    training.learner.copy_to_target()


def nan_in_the_first_convolution(training: Training) -> None:
    with torch.no_grad():
        next(training.learner.online.parameters())[0, 0, 0, 0] = torch.nan


@pytest.fixture(scope="module")
def blown_up(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, HaltedError]:
    path = tmp_path_factory.mktemp("blown_up") / "run"
    with pytest.raises(HaltedError) as caught:
        run(path, *BLOWN_UP)
    return path, caught.value


@pytest.mark.fault("D03")
def test_learning_rate_of_10_is_halted_by_the_gate_of_gradients(blown_up) -> None:
    path, error = blown_up
    assert gate_events(path)[-1] == ("gradients", "tripped")
    assert error.exit_code == 3


@pytest.mark.fault("D03")
def test_learning_rate_of_10_warns_of_norm_and_q_first(blown_up) -> None:
    path, _ = blown_up
    assert {("grad_norm", "warned"), ("q_bound", "warned")} <= set(gate_events(path))


@pytest.mark.fault("D03")
def test_halt_comes_within_111_updates_of_the_first_such_gradient(blown_up) -> None:
    rows = updates_of(bundle_of(blown_up[0]))
    first = next(row["update"] for row in rows if row["nonfinite_gradients"])
    assert rows[-1]["nonfinite_gradients"] == 101
    assert rows[-1]["update"] == first + 100


@pytest.mark.fault("D03")
def test_bundle_holds_batch_updates_weights_spec_and_what_to_look_at_first(blown_up) -> None:
    bundle = bundle_of(blown_up[0])
    assert sorted(entry.name for entry in bundle.iterdir()) == [
        "README.txt", "agent.pt", "batch", "spec.toml", "updates.csv",
    ]  # fmt: skip
    assert np.load(bundle / "batch/s_tm1.npy").shape == (8, 4, 36, 36)
    assert torch.load(bundle / "agent.pt", weights_only=True).keys() >= {"online", "target", "optimizer"}
    assert (bundle / "spec.toml").read_bytes() == (blown_up[0] / "spec.toml").read_bytes()
    assert 'The gate "gradients" halted this run' in (bundle / "README.txt").read_text()


@pytest.mark.fault("D03")
def test_halt_leaves_no_summary_and_the_last_good_checkpoint_as_the_latest(blown_up) -> None:
    path, error = blown_up
    assert not (path / "summary.json").exists()
    halted_at = int(bundle_of(path).name.removeprefix("step_"))
    latest = RunDirectory.open(path).checkpoints / "latest"
    assert 0 < int(latest.resolve().name.removeprefix("step_")) < halted_at
    assert latest.resolve().name in str(error)


@pytest.mark.fault("D03")
def test_nan_reward_is_halted_by_the_gate_of_the_loss(tmp_path: Path, spoiled) -> None:
    spoiled(reward_nan_from_step_120)
    with pytest.raises(HaltedError, match=r"gate loss: update \d+: loss or Q is nan"):
        run(tmp_path / "run")
    rows = updates_of(bundle_of(tmp_path / "run"))
    assert [np.isfinite(row["loss"]) for row in rows[-2:]] == [True, False]
    halted_at = int(bundle_of(tmp_path / "run").name.removeprefix("step_"))
    assert 0 <= (halted_at - 64) / 4 - rows[-1]["update"] <= 10, "updates from the first NaN to the halt"


@pytest.mark.fault("H08")
@pytest.mark.parametrize(
    ("kind", "precision"),
    [
        ("nature", "fp32"),
        ("data_efficient", "bf16"),
        pytest.param("nature", "bf16", marks=pytest.mark.slow),
        pytest.param("data_efficient", "fp32", marks=pytest.mark.slow),
    ],
)
def test_nan_in_a_convolution_is_halted_by_the_gate_of_the_loss(
    tmp_path: Path, spoiled, kind: str, precision: str
) -> None:
    spoiled(nan_in_the_first_convolution)
    with pytest.raises(HaltedError, match=r"gate loss: update \d+: loss or Q is nan"):
        run(tmp_path / "run", f"network.kind={kind}", f"learner.precision={precision}")


@pytest.mark.fault("D03")
def test_batch_of_the_bundle_is_that_of_the_first_update_that_is_not_finite(tmp_path: Path, spoiled) -> None:
    sampled: list[Minibatch] = []

    def spoil(training: Training) -> None:
        reward_nan_from_step_120(training)
        sample = training.replay.sample

        def recorded() -> Minibatch:
            sampled.append(sample())
            return sampled[-1]

        training.replay.sample = recorded

    spoiled(spoil)
    with pytest.raises(HaltedError):
        run(tmp_path / "run", "gates.check_period_updates=30")
    first = next(batch for batch in sampled if batch.r_t.isnan().any())
    bundle = bundle_of(tmp_path / "run")
    assert len(updates_of(bundle)) < len(sampled), "the look came later than the fault"
    assert np.load(bundle / "batch/cell.npy").tolist() == first.index.tolist()
    assert np.isnan(np.load(bundle / "batch/r_t.npy")).any()


@pytest.mark.fault("D03")
@pytest.mark.slow
def test_nan_reward_is_halted_under_prioritized_replay_too(tmp_path: Path, spoiled) -> None:
    spoiled(reward_nan_from_step_120)
    with pytest.raises(HaltedError, match="gate loss"):
        run(tmp_path / "run", "track=B", "replay.prefill_steps=64", "gates.check_period_updates=30")


@pytest.mark.fault("D03")
def test_update_between_looks_is_looked_at_before_a_checkpoint(tmp_path: Path, spoiled) -> None:
    spoiled(reward_nan_from_step_120)
    with pytest.raises(HaltedError):
        run(tmp_path / "run", "gates.check_period_updates=1000000")
    assert not (tmp_path / "run/checkpoints").joinpath("latest").exists()


def test_update_between_looks_is_looked_at_before_a_light_evaluation(tmp_path: Path, spoiled) -> None:
    spoiled(reward_nan_from_step_120)
    with pytest.raises(HaltedError):
        run(tmp_path / "run", "gates.check_period_updates=1000000", "evaluation.light_period_frames=800",
            "evaluation.full_period_frames=9999")  # fmt: skip
    _, *scores = (tmp_path / "run/eval_log.csv").read_text().splitlines()
    assert scores == []


def test_zeroed_network_is_reported_at_the_first_period_of_learning(tmp_path: Path, spoiled) -> None:
    spoiled(zero_network)
    run(tmp_path / "run", "training.total_frames=440", "gates.greedy_action_periods=1")
    lines = [json.loads(line) for line in (tmp_path / "run/events.jsonl").read_text().splitlines()]
    reported = {
        (line["data"]["gate"], line["data"]["state"], line["step"])
        for line in lines
        if line["kind"] == "gate"
    }
    # learning begins after step 64, and a period ends at step 100: 8 updates
    assert reported >= {("dead_units", "warned", 100), ("actions", "warned", 100)}


def test_degenerate_priorities_are_reported_at_the_next_report(tmp_path: Path, spoiled) -> None:
    def one_error_outweighs_all(training: Training) -> None:
        update_priorities, outlier = training.replay.update_priorities, torch.tensor([1e9, *[1.0] * 7])

        def first_is_spoiled(batch: Minibatch, errors: torch.Tensor) -> None:
            update_priorities(batch, errors * outlier if training.learner.updates == 0 else errors)

        training.replay.update_priorities = first_is_spoiled

    spoiled(one_error_outweighs_all)
    run(tmp_path / "run", "toggles.prioritized=true", "gates.min_effective_share=0.2",
        "replay.prefill_steps=150", "replay.capacity_steps=250", "logging.replay_period_steps=10",
        "training.total_frames=720", "evaluation.light_period_frames=9999",
        "evaluation.full_period_frames=9999")  # fmt: skip
    lines = [json.loads(line) for line in (tmp_path / "run/events.jsonl").read_text().splitlines()]
    (alert,) = [line for line in lines if line["data"].get("gate") == "priorities"]
    # new transitions enter at the highest priority there has been, so that a few share the mass, and still do
    found = alert["data"]
    assert (alert["step"], found["state"], found["threshold"]) == (160, "warned", 0.2)
    assert found["value"] < 0.2


def test_priorities_of_a_sound_run_are_not_reported(tmp_path: Path) -> None:
    run(tmp_path / "run", "toggles.prioritized=true", "training.total_frames=640")
    assert "priorities" not in {gate for gate, _ in gate_events(tmp_path / "run")}


def test_disk_with_little_room_left_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(total=10**13, used=10**13 - 10**6, free=10**6)
    monkeypatch.setattr(health, "shutil", SimpleNamespace(disk_usage=lambda _: usage))
    run(tmp_path / "run", *FEW_STEPS, "logging.update_period_steps=10")
    assert ("disk", "warned") in gate_events(tmp_path / "run")


@pytest.mark.slow
def test_gates_that_do_not_trip_change_nothing_that_is_learned(tmp_path: Path) -> None:
    loud = ("gates.max_grad_norm=1e-9", "gates.max_dead_unit_share=0", "gates.check_period_updates=1")
    short = "training.total_frames=440"
    assert run(tmp_path / "a", short, *loud)["state_digest"] == run(tmp_path / "b", short)["state_digest"]
    assert gate_events(tmp_path / "a") != gate_events(tmp_path / "b")


def test_measuring_dead_units_changes_no_state() -> None:
    with begun(tiny_spec()) as training:
        ticks_of(training, 90)
        before = tree_digest(training.state_dict())
        assert dead_unit_share(training) is not None
        assert tree_digest(training.state_dict()) == before


@pytest.mark.fault("D03")
def test_program_ends_with_3_and_says_where_to_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], spoiled
) -> None:
    spoiled(reward_nan_from_step_120)
    path = str(tmp_path / "run")
    arguments = ["dqn", "train", str(TINY_CATCH), "--run-dir", path, "--device", "cpu", "--plain"]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as caught:
        main()
    printed = capsys.readouterr()
    assert caught.value.code == 3
    assert "README.txt" in printed.err
    assert "gate loss tripped: update" in printed.out


class InterruptAt:
    """A view that interrupts at a step of update_log."""

    def __init__(self, step: int) -> None:
        self.step = step

    def handle(self, event: Event) -> None:
        if isinstance(event, Row) and event.table == "update_log" and event.values["step"] == self.step:
            signal.raise_signal(signal.SIGTERM)

    def close(self) -> None:
        pass


@pytest.mark.slow
@pytest.mark.fault("D03")
def test_resumed_run_keeps_the_states_of_its_gates_and_says_them(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with pytest.raises(InterruptedRunError):
        run(path, "training.total_frames=640", "gates.max_dead_unit_share=0", views=[InterruptAt(100)])
    assert gate_events(path).count(("dead_units", "warned")) == 1
    launch.resume(RunDirectory.open(path), device=CPU, views=[], total_frames=None)
    assert gate_events(path).count(("dead_units", "warned")) == 2  # once more for views that were not there
    assert "still " in (path / "events.jsonl").read_text()


@pytest.mark.fault("D03")
@pytest.mark.slow
def test_count_of_gradients_goes_on_over_a_resume(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with pytest.raises(InterruptedRunError):
        run(path, *BLOWN_UP, views=[InterruptAt(100)])
    with pytest.raises(HaltedError):
        launch.resume(RunDirectory.open(path), device=CPU, views=[], total_frames=None)
    rows = updates_of(bundle_of(path))
    assert rows[0]["update"] > 1
    assert rows[0]["nonfinite_gradients"] > 1
    assert rows[-1]["nonfinite_gradients"] == 101


@pytest.mark.slow
@pytest.mark.fault("D03")
def test_third_bad_evaluation_tags_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    returns = iter([1.0, 9.0, 2.0, 2.0, 2.0, 2.0, 9.0])
    monkeypatch.setattr(EvaluationScore, "mean_return", property(lambda score: score.returns[0]))
    monkeypatch.setattr(
        EvaluationScore, "of",
        classmethod(lambda cls, played: cls(
            returns=(next(returns),) * 2, lengths_frames=(4, 4), end_reasons=("game_over",) * 2
        )),
    )  # fmt: skip
    run(tmp_path / "run", "training.total_frames=560", "evaluation.full_period_frames=80",
        "evaluation.light_period_frames=100000", "checkpoint.keep_last=9")  # fmt: skip
    catalog = read_catalog(tmp_path / "run/checkpoints")
    assert [entry.tag for entry in catalog] == [None, None, None, None, "inspect", None, None]
    reported = [state for gate, state in gate_events(tmp_path / "run") if gate == "evaluations"]
    assert reported == ["watching", "warned", "ok"]
