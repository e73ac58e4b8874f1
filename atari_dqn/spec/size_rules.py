"""Limits on sizes that checkpoints and machines can hold. Runs that have begun keep what they have."""

from __future__ import annotations

from atari_dqn.spec.rule import Rule

MOST_ROLLING_EPISODES = 100_000
MOST_SCREEN_PIXELS = 320
"""A piece of the replay in a checkpoint, 8,192 frames, has at most 1 GiB."""

SIZE_RULES = (
    Rule(
        ("logging.rolling_episodes",),
        lambda episodes: episodes <= MOST_ROLLING_EPISODES,
        f"expected at most {MOST_ROLLING_EPISODES:,}: a checkpoint has each of the episodes",
        applies_to_existing_runs=False,
    ),
    Rule(
        ("env.screen_size_pixels",),
        lambda pixels: pixels <= MOST_SCREEN_PIXELS,
        f"expected at most {MOST_SCREEN_PIXELS}: the emulator's screen has 210 × 160 pixels",
        applies_to_existing_runs=False,
    ),
)
