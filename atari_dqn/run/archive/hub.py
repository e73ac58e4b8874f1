"""Write the folder that model hubs expect: a card with front matter, the scores, a video and the archive."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import stdev

import msgspec

from atari_dqn.files.atomic import json_document
from atari_dqn.files.documents import checked, parse_json
from atari_dqn.files.failures import writing
from atari_dqn.files.whole_directory import whole_directory
from atari_dqn.run.archive.archive import PROVENANCE, SPEC, Archive, write_archive, write_parts
from atari_dqn.run.folder_kinds import HUB_ARCHIVE
from atari_dqn.run.provenance import Provenance
from atari_dqn.run.recorded_scores import RecordedScore

CARD, RESULTS, VIDEO = "README.md", "results.json", "replay.mp4"


def write_hub_folder(folder: Path, archive: Archive, scores: Sequence[RecordedScore]) -> bool:
    """Write a new folder for a hub from an archive and its scores; return whether there is a video in it."""
    videos = [data for name, data in archive.parts.items() if name.startswith("videos/")]
    files = {
        CARD: card(archive, scores).encode(),
        RESULTS: json_document(msgspec.to_builtins(list(scores))),
        SPEC: archive.parts[SPEC],
        **({VIDEO: videos[-1]} if videos else {}),
    }
    with writing(folder), whole_directory(folder, holds=(*files, HUB_ARCHIVE)) as partial:
        write_parts(files, partial)
        write_archive(partial / HUB_ARCHIVE, archive.agent, archive.parts)
    return bool(videos)


def card(archive: Archive, scores: Sequence[RecordedScore]) -> str:
    """Format the card: the metrics of this agent's own scores, each with its protocol, and how to use it."""
    agent = archive.agent
    own = [score for score in scores if score.step == agent.step and score.returns]
    sections = [
        _front_matter(agent.game, [score for score in own if not score.frame_caps]),
        f"# {agent.game}, {agent.env_frames:,} emulator frames{_track(archive)}\n",
        "An agent of the DQN family, trained by atari_dqn.\n",
        _table(own)
        if own
        else f"These weights have not been evaluated; other scores of the run are in `{RESULTS}`.\n",
        _USE,
    ]
    return "\n".join(sections)


def _track(archive: Archive) -> str:
    provenance = checked(archive.path / PROVENANCE, parse_json(archive.parts[PROVENANCE]), Provenance)
    return f", track {provenance.track.label}" if provenance.track else ""


_USE = f"""\
## Use

```
dqn eval {HUB_ARCHIVE}
dqn record {HUB_ARCHIVE}
```

```python
import atari_dqn as dqn

agent = dqn.load("{HUB_ARCHIVE}")
```

`{SPEC}` is the complete spec of the run; `{RESULTS}` has every score of it, with the return of each game.
"""


def _front_matter(game: str, whole: Sequence[RecordedScore]) -> str:
    """Format what a hub reads. `whole`: the scores without a game that the frame cap cut."""
    lines = ["---", "library_name: atari_dqn", "tags:"]
    lines += [
        f"- {tag}" for tag in (game, "deep-reinforcement-learning", "reinforcement-learning", "atari_dqn")
    ]
    if whole:
        most_games = max(whole, key=lambda score: len(score.returns or ()))
        lines += [
            "model-index:",
            "- name: atari_dqn",
            "  results:",
            "  - task:",
            "      type: reinforcement-learning",
            "      name: reinforcement-learning",
            "    dataset:",
            f"      name: {game}",
            f"      type: {game}",
            "    metrics:",
            "    - type: mean_reward",
            f'      value: "{_value(most_games)}"',
            "      name: mean_reward",
            "      verified: false",
        ]
    return "\n".join([*lines, "---", ""])


def _value(score: RecordedScore) -> str:
    """Format mean and standard deviation over games, as hubs expect them."""
    returns = score.returns or ()
    spread = stdev(returns) if len(returns) > 1 else 0.0
    return f"{score.mean_return:.2f} +/- {spread:.2f}"


def _table(own: Sequence[RecordedScore]) -> str:
    rows = [
        f"| {_value(score)} | {len(score.returns or ())} | {score.frame_caps} | "
        f"{score.protocol.short() if score.protocol else '?'} | {score.protocol_digest} |"
        for score in own
    ]
    head = ["| return | games | cut by the frame cap | protocol | fingerprint |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows, ""])
