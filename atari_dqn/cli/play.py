"""`dqn play`."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atari_dqn.cli.options import (
    MOST_EPISODES,
    DeviceOption,
    OptionalCheckpointPath,
    RecordingProtocol,
    check_run,
    choice,
    integer,
    number,
)
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.errors import InterruptedRunError, UserError
from atari_dqn.machine.devices import check_device_name, resolve_device
from atari_dqn.spec.constraints import given

if TYPE_CHECKING:
    from atari_dqn.evaluation.frozen_agent import FrozenAgent
    from atari_dqn.play.keyboard import Keys
    from atari_dqn.play.stage import Seat
    from atari_dqn.play.terminal import Terminal
    from atari_dqn.play.window import Window
    from atari_dqn.run.scores import EvaluationEpisode
    from atari_dqn.spec.schema import Spec

EXAMPLES = """\
dqn play outputs/pong_quick_seed1
dqn play outputs/pong_quick_seed1 --player both --speed 0.5
dqn play --game breakout --window"""

_SLOWEST, _FASTEST = 0.01, 100.0


class PlayerName(StrEnum):
    """Values of `--player`."""

    AGENT = "agent"
    PERSON = "person"
    BOTH = "both"


GameOption = Annotated[str | None, typer.Option(metavar="NAME", help="Without an agent: the game to play.")]
SeedOption = Annotated[
    str | None, typer.Option(metavar="N", help="Without an agent: the seed of the games. Default: 1.")
]
PlayerOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="agent, person or both, from the same seed. Default: the agent if there is one.",
        autocompletion=lambda: list(PlayerName),
    ),
]
ProtocolOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="run: the run's own, the default; classic: Track A's, the default without a run; "
        "modern: Track B's.",
        autocompletion=lambda: list(RecordingProtocol),
    ),
]


def play(
    path: OptionalCheckpointPath = None,
    game: GameOption = None,
    player: PlayerOption = None,
    episodes: Annotated[str, typer.Option(metavar="N", help="Games to play.")] = "1",
    protocol: ProtocolOption = None,
    speed: Annotated[str, typer.Option(metavar="FACTOR", help="1 is 60 frames a second.")] = "1",
    seed: SeedOption = None,
    device: DeviceOption = "auto",
    window: Annotated[
        bool, typer.Option("--window", help="Play in a window, which knows how long keys are held.")
    ] = False,
    save: Annotated[
        bool, typer.Option("--save/--no-save", help="Store the scores of finished games.")
    ] = True,
) -> None:
    """Show games of an agent as it plays them, or play yourself, in this terminal or in a window."""
    num_episodes = integer("--episodes", episodes, high=MOST_EPISODES)
    factor = _speed(speed)
    who = _player(player, path, game)
    named = choice("--protocol", protocol or ("classic" if path is None else "run"), RecordingProtocol)
    own_seed = integer("--seed", "1" if seed is None else seed, low=0, high=2**63 - 1)
    check_device_name(device)
    if path is None:
        _check_without_agent(named, device)
    else:
        _check_with_agent(path, seed)
    spec_of_game = None if game is None else _spec_of(game, own_seed)
    with interrupts_blocked():
        from atari_dqn.evaluation.frozen_agent import load_frozen
        from atari_dqn.play.keyboard import HELP_TO_PLAY, HELP_TO_WATCH
        from atari_dqn.play.quit_signals import QuitSignals
        from atari_dqn.spec.named_protocols import with_protocol

    help_line = HELP_TO_WATCH if who is PlayerName.AGENT else HELP_TO_PLAY
    place = _opened_window(help_line) if window else _terminal(help_line)
    agent = None if path is None else load_frozen(path, resolve_device(device))
    spec = with_protocol(agent.spec if agent else given(spec_of_game), named.value)
    with QuitSignals(place.keys) as signals:
        finished = _play(place, agent, spec, who, episodes=num_episodes, speed=factor)
        _report(finished, partial(_save, agent, spec, named, factor) if save else None)
    if signals.received is not None:
        raise InterruptedRunError(signals.received)


def _check_without_agent(protocol: RecordingProtocol, device: str) -> None:
    if device != "auto":
        raise UserError("--device: expected with an agent; without one, nothing is computed on a device")
    if protocol is RecordingProtocol.RUN:
        raise UserError("--protocol: 'run' is that of a run; expected classic or modern for --game")


def _check_with_agent(path: Path, seed: str | None) -> None:
    if seed is not None:
        raise UserError("--seed: expected with --game; the games of an agent have the seed of its run")
    check_run(path)


def _terminal(help_line: str) -> Terminal:
    from atari_dqn.play.terminal import Terminal

    return Terminal(help_line)


def _opened_window(help_line: str) -> Window:
    if find_spec("pygame") is None:
        raise UserError("--window needs pygame; install it with `pip install 'atari-dqn[play]'`")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    from atari_dqn.play.window import Window

    return Window(help_line)


def _speed(text: str) -> float:
    return number("--speed", text, low=_SLOWEST, high=_FASTEST)


def _player(text: str | None, path: Path | None, game: str | None) -> PlayerName:
    """Check that there is either an agent or a game; return who plays."""
    if (path is None) == (game is None):
        found = "nothing" if path is None else "an agent and --game"
        raise UserError(f"found {found} to play; expected RUN_DIR, CHECKPOINT or --game NAME")
    who = choice("--player", text or ("person" if path is None else "agent"), PlayerName)
    if path is None and who is not PlayerName.PERSON:
        raise UserError(f"--player {who}: an agent is needed; expected RUN_DIR or CHECKPOINT")
    return who


def _spec_of(game: str, seed: int) -> Spec:
    """Return Track A's spec of a game."""
    from atari_dqn.spec.games import TOY_GAMES, game_problem
    from atari_dqn.spec.loader import load_spec

    if game in TOY_GAMES:
        raise UserError(f'--game: found "{game}", a toy game, expected a ROM id of ale-py, such as "pong"')
    problem = game_problem(game, kind="atari")
    if problem:
        raise UserError(f"--game: {problem}")
    return load_spec(Path("pong_trackA"), [f"game={game}", f"seed={seed}"]).spec


def _play(
    place: Terminal | Window,
    agent: FrozenAgent | None,
    spec: Spec,
    who: PlayerName,
    *,
    episodes: int,
    speed: float,
) -> dict[str, list[EvaluationEpisode]]:
    """Play until the last game ends or a person quits; return the finished games of each player."""
    from atari_dqn.play.stage import QuitError, Stage

    finished: dict[str, list[EvaluationEpisode]] = {}
    try:
        with place:
            stage = Stage(place, place.keys, speed=speed)
            for episode in range(episodes):
                seats = _seats(agent, spec, who, place.keys, episode)
                finished |= {seat.name: finished.get(seat.name, []) for seat in seats}
                try:
                    stage.play(seats)
                finally:  # one player's game may be over when another's is quit
                    for seat in seats:
                        finished[seat.name] += [seat.game.result] if seat.game.result else []
    except (QuitError, KeyboardInterrupt):
        pass  # what was finished is kept
    return finished


def _seats(agent: FrozenAgent | None, spec: Spec, who: PlayerName, keys: Keys, episode: int) -> list[Seat]:
    """Seat the players, each at the same game of their own."""
    from atari_dqn.play.agent_player import AgentPlayer
    from atari_dqn.play.keyboard import Person
    from atari_dqn.play.live_game import LiveGame
    from atari_dqn.play.stage import Seat

    seats = []
    if agent is not None and who is not PlayerName.PERSON:
        game = LiveGame(spec, episode)
        seats.append(
            Seat(name="agent", player=AgentPlayer(agent.network, spec, game.info, episode), game=game)
        )
    if who is not PlayerName.AGENT:
        game = LiveGame(spec, episode)
        seats.append(Seat(name="person", player=Person(keys, game.info.action_names), game=game))
    return seats


def _report(
    finished: dict[str, list[EvaluationEpisode]],
    save: Callable[[str, list[EvaluationEpisode]], Path] | None,
) -> None:
    """Print each player's score, and save it; raise a `UserError` of one at the end, after the other's."""
    problems = []
    for name, games in finished.items():
        typer.echo(_text(name, games))  # first: the score must not be lost if it cannot be saved
        try:
            if games and save is not None:
                typer.echo(f"  kept in  {save(name, games)}")
        except UserError as error:
            problems.append(error)
    if problems:
        raise problems[0]


def _text(name: str, games: list[EvaluationEpisode]) -> str:
    """Format the score of a player."""
    from atari_dqn.run.scores import EvaluationScore

    return f"{name}: {EvaluationScore.of(games)}" if games else f"{name}: no game was finished"


def _save(
    agent: FrozenAgent | None,
    spec: Spec,
    protocol: RecordingProtocol,
    speed: float,
    name: str,
    games: list[EvaluationEpisode],
) -> Path:
    """Save the score of a player: an agent's as `dqn eval` does, since the games are the same."""
    from atari_dqn.envs.games import game_info
    from atari_dqn.evaluation.checkpoint_score import checkpoint_score, save_score
    from atari_dqn.files.atomic import prepare_folder
    from atari_dqn.play.person_score import save_person

    if agent is not None and name == PlayerName.AGENT:
        prepare_folder(
            agent.run.evaluations, remedy="make it writable; then `dqn eval` plays the same games again"
        )
        score = checkpoint_score(spec, protocol.value, games, checkpoint=agent.choice, info=agent.info)
        return save_score(agent, score).path
    folder = Path("plays") if agent is None else agent.run.path / "plays"
    return save_person(folder, spec, game_info(spec), games, speed=speed)
