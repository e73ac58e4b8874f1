"""A person's score is stored with what it was measured by."""

import json
from pathlib import Path

from tiny import tiny_spec

from atari_dqn.envs.games import game_info
from atari_dqn.play.person_score import person_document, save_person
from atari_dqn.run.scores import EvaluationEpisode

GAMES = [EvaluationEpisode(episode_return=3.0, length_frames=40, end_reason="game_over")] * 2


def test_score_has_the_games_the_speed_and_the_protocol_without_what_is_an_agents(tmp_path: Path) -> None:
    spec = tiny_spec()
    document = json.loads(
        save_person(tmp_path / "plays", spec, game_info(spec), GAMES, speed=0.5).read_text()
    )
    assert (document["player"], document["returns"], document["mean_return"]) == ("person", [3.0, 3.0], 3.0)
    assert document["speed"] == 0.5
    assert document["protocol"]["frame_skip"] == spec.env.frame_skip
    assert not {"epsilon", "checkpoint", "training_max_abs_reward"} & document["protocol"].keys()


def test_score_has_the_lengths_of_the_games_in_frames() -> None:
    spec = tiny_spec()
    document = person_document(spec, game_info(spec), GAMES, speed=1.0)
    assert document["lengths_frames"] == (40, 40)


def test_protocol_of_a_person_has_all_that_makes_the_games() -> None:
    spec = tiny_spec("env.sticky_probability=0.25", "evaluation.max_episode_frames=400")
    protocol = person_document(spec, game_info(spec), GAMES, speed=1.0)["protocol"]
    assert (protocol["sticky_probability"], protocol["max_episode_frames"]) == (0.25, 400)
    assert {"noop_max_frames", "full_action_set", "ale_version", "rom_md5"} < protocol.keys()


def test_a_second_score_does_not_replace_the_first(tmp_path: Path) -> None:
    spec = tiny_spec()
    paths = {save_person(tmp_path, spec, game_info(spec), GAMES, speed=1.0) for _ in range(2)}
    assert len(paths) == len(list(tmp_path.iterdir())) == 2
