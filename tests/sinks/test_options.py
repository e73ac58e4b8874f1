import json
from pathlib import Path

import pytest

from atari_dqn.errors import UserError
from atari_dqn.telemetry.sinks import options as choice
from atari_dqn.telemetry.sinks.options import SinkOptions, checked_sinks, recorded_sinks


def test_each_sink_is_chosen_once_and_none_chooses_none() -> None:
    assert checked_sinks(["parquet", "tensorboard", "parquet"]) == ("parquet", "tensorboard")
    assert checked_sinks(["none"]) == ()


def test_an_unknown_sink_is_an_error_that_knows_better() -> None:
    with pytest.raises(
        UserError, match=r"unknown sink 'tensorbord'; expected one of .*; did you mean 'tensorboard'"
    ):
        checked_sinks(["tensorbord"])


def test_a_missing_package_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'atari-dqn\[tensorboard\]'"):
        checked_sinks(["tensorboard"])


def test_wandb_without_a_key_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("WANDB_API_KEY", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with pytest.raises(UserError, match="no key found; run `wandb login`"):
        checked_sinks(["wandb"])


def test_a_run_remembers_its_sinks(target) -> None:
    for sink in SinkOptions(sinks=("parquet",)).open(target()):
        sink.close()
    assert recorded_sinks(target().directory) == ("parquet",)


@pytest.mark.parametrize("content", ["", "[]", json.dumps({"sinks": ["gone"]})])
def test_what_cannot_be_remembered_is_no_sink(tmp_path: Path, content: str) -> None:
    (tmp_path / "sinks.json").write_text(content)
    assert recorded_sinks(tmp_path) == ()
