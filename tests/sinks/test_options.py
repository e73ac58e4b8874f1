import json
from pathlib import Path

import pytest

from atari_dqn.errors import UserError
from atari_dqn.telemetry.sinks import options as choice
from atari_dqn.telemetry.sinks.options import SinkOptions, checked_sinks, recorded_sinks
from atari_dqn.telemetry.sinks.wandb import require_key


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


@pytest.fixture
def netrc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file of passwords of a user without a key of W&B; it is missing."""
    for name in ("WANDB_API_KEY", "WANDB_IDENTITY_TOKEN_FILE", "WANDB_BASE_URL", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    return tmp_path / "netrc"


def test_wandb_without_a_key_is_refused_before_anything_starts(netrc: Path) -> None:
    with pytest.raises(UserError, match="no key found; run `wandb login`"):
        checked_sinks(["wandb"])


@pytest.mark.parametrize("variable", ["WANDB_API_KEY=0123", "WANDB_MODE=offline", "WANDB_MODE=disabled"])
def test_wandb_with_a_key_or_without_its_server_is_accepted(
    netrc: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(*variable.split("="))
    assert checked_sinks(["wandb"]) == ("wandb",)


def test_key_of_wandb_is_that_of_its_server(netrc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc.write_text("machine api.wandb.ai\n  login user\n  password 0123\n")
    require_key()
    monkeypatch.setenv("WANDB_BASE_URL", "https://wandb.example.org")
    with pytest.raises(UserError, match="no key found"):
        require_key()


def test_a_run_remembers_its_sinks(target) -> None:
    for sink in SinkOptions(sinks=("parquet",)).open(target()):
        sink.close()
    assert recorded_sinks(target().directory) == ("parquet",)


@pytest.mark.parametrize("content", ["", "[]", json.dumps({"sinks": ["gone"]})])
def test_what_cannot_be_remembered_is_no_sink(tmp_path: Path, content: str) -> None:
    (tmp_path / "sinks.json").write_text(content)
    assert recorded_sinks(tmp_path) == ()
