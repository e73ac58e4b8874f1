"""Which Ray clusters are joined, and what is reserved on them: all without Ray."""

from collections.abc import Callable
from pathlib import Path

import pytest
from forked import CommandServer, Finished

from atari_dqn.errors import UserError
from atari_dqn.machine.loopback import is_loopback
from atari_dqn.scale.on_ray.address import check_requires_token, check_token, parse_address

Command = Callable[..., Finished]


FILES = {
    "sweep": 'spec = "catch_smoke"\n',
    "tune": 'spec = "catch_smoke"\n[space]\ntoggles.n_step = { choice = [1, 2] }\n[budget]\ntrials = 2\n',
}


@pytest.fixture(params=FILES)
def command(request: pytest.FixtureRequest, command_server: CommandServer, tmp_path: Path) -> Command:
    """Run `dqn sweep` or `dqn tune` on Ray."""
    (tmp_path / "mine.toml").write_text(FILES[request.param])
    return lambda *words: command_server.run(request.param, "mine.toml", "--on", "ray", *words, cwd=tmp_path)


@pytest.mark.parametrize("text", ["", "host", ":6379", "host:0", "host:65536", "ray://host:10001", "a b:1"])
def test_an_address_of_another_form_is_refused(text: str):
    with pytest.raises(UserError, match="expected HOST:PORT"):
        parse_address(text)


def test_addresses_are_split():
    assert parse_address("127.0.0.1:6379") == ("127.0.0.1", 6379)
    assert parse_address("[::1]:65535") == ("::1", 65535)


def test_loopback_is_this_machine_alone():
    hosts = ["127.0.0.1", "127.8.0.1", "::1", "localhost", "0.0.0.0", "10.0.0.1", "localhost.example.org"]
    assert [is_loopback(host) for host in hosts] == [True, True, True, True, False, False, False]


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"RAY_AUTH_MODE": "token"},
        {"RAY_AUTH_TOKEN": "x"},
        {"RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN": "x"},
    ],
)
def test_a_network_without_a_token_is_refused_with_how_to_set_it_up(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(
        UserError, match=r"10\.0\.0\.1 is reached over the network.*set RAY_AUTH_MODE=token on each"
    ):
        check_token("10.0.0.1", environment)


def test_a_token_is_found_where_ray_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    mode = {"RAY_AUTH_MODE": "token"}
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("secret")
    check_token("10.0.0.1", {**mode, "RAY_AUTH_TOKEN": "secret"})
    check_token("10.0.0.1", {**mode, "RAY_AUTH_TOKEN_PATH": str(tmp_path / ".ray" / "auth_token")})
    check_token("10.0.0.1", mode)
    check_token("127.0.0.1", {})


def test_a_user_without_a_home_directory_has_no_token(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    with pytest.raises(UserError, match="no token is set up"):
        check_token("10.0.0.1", {"RAY_AUTH_MODE": "token"})


def test_a_node_that_requires_no_token_is_refused_unless_it_is_loopback():
    check_requires_token("10.0.0.1", "token")
    check_requires_token("127.0.0.1", "")
    with pytest.raises(UserError, match=r"the Ray node 10\.0\.0\.1 requires no token"):
        check_requires_token("10.0.0.1", "disabled")


BAD = {
    ("--address", "host"): "--address: found 'host', expected HOST:PORT",
    ("--address", "10.0.0.1:6379"): "10.0.0.1 is reached over the network, and no token is set up",
    ("--plan",): "--on ray: expected without --plan",
    ("--status",): "--on ray: expected without --plan",
    ("--on", "rey"): "--on: found 'rey', expected local or ray; did you mean \"ray\"?",
    ("--address", "127.0.0.1:1"): "--address: nothing answers at 127.0.0.1:1: connection refused",
}


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_bad_input_is_one_message_and_starts_nothing(
    command: Command, tmp_path: Path, words: tuple[str, ...]
):
    refused = command(*words)
    assert (refused.code, refused.out) == (UserError.exit_code, "")
    assert BAD[words] in refused.err
    assert len(refused.err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


def test_an_address_without_ray_is_refused(command: Command):
    refused = command("--on", "local", "--address", "127.0.0.1:6379")
    assert (refused.code, "--address: expected with --on ray" in refused.err) == (UserError.exit_code, True)
