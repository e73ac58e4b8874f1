"""What each command's help gives as examples: lines to be typed as they are, or with another path."""

from __future__ import annotations

EXAMPLES = {
    "": """\
dqn train runs/pong_quick.toml
dqn train --help""",
    "train": """\
dqn train runs/pong_quick.toml
dqn train runs/pong_trackB.toml --set game=breakout --set seed=2
dqn train runs/pong_trackA.toml --set training.total_frames=2.4M --plan""",
    "resume": """\
dqn resume outputs/pong_quick_seed1
dqn resume outputs/pong_quick_seed1 --frames 5M""",
    "eval": """\
dqn eval outputs/pong_quick_seed1
dqn eval outputs/pong_quick_seed1/checkpoints/best --protocol both""",
    "record": """\
dqn record outputs/pong_quick_seed1
dqn record outputs/pong_quick_seed1 -o pong.mp4 --best-of 5 --saliency
dqn record --replay pong.mp4 -o again.mp4""",
    "compare": """\
dqn compare outputs/*
dqn compare outputs/pong_* --at 1M --html pong.html""",
    "verify": """\
dqn verify outputs/pong_quick_seed1
dqn verify outputs/pong_quick_seed1 --checkpoint beginning --frames 20k""",
    "bench": """\
dqn bench runs/pong_quick.toml
dqn bench runs/pong_quick.toml --set learner.precision=fp32 --json""",
    "watch": """\
dqn watch outputs/pong_quick_seed1
dqn watch outputs/* --once""",
    "dashboard": """\
dqn dashboard
dqn dashboard outputs --host 0.0.0.0 --port 8000""",
    "doctor": """\
dqn doctor
dqn doctor --measure""",
    "spec": """\
dqn spec show runs/pong_quick.toml --docs
dqn spec check my_run.toml
dqn spec diff runs/pong_trackA.toml outputs/pong_quick_seed1""",
    "spec show": """\
dqn spec show runs/pong_quick.toml --docs
dqn spec show runs/pong_trackA.toml --set toggles.double=true""",
    "spec check": """\
dqn spec check my_run.toml --set game=breakout""",
    "spec diff": """\
dqn spec diff runs/pong_trackA.toml runs/pong_trackB.toml
dqn spec diff runs/pong_quick.toml outputs/pong_quick_seed1""",
}
"""By the command's name; the empty name is the program's."""
