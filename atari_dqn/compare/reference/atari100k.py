"""The published columns of Atari 100k, with their sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from atari_dqn.compare.reference.studies import Figure, curves

FRAMES = 400_000
"""The budget in emulator frames: 100,000 agent steps."""
Sourced = Literal["run by run", "printed", "recalled"]
"""The origin of a figure: the mean over released runs; a number printed in papers; or a number recalled from
memory, of which only the aggregate was confirmed."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """The scores of one published agent on the 26 games."""

    agent: str
    """The name in scores.csv."""
    title: str
    sourced: Sourced

    @property
    def study(self) -> str:
        """The name of the study in sources.toml."""
        return "atari_100k_recalled" if self.sourced == "recalled" else "atari_100k"


COLUMNS = (
    Column(agent="der_vanhasselt2019", title="DER, van Hasselt et al. 2019", sourced="printed"),
    Column(agent="der_agarwal2021", title="DER (Dopamine), Agarwal et al. 2021", sourced="recalled"),
    Column(agent="drq_eps_agarwal2021", title="DrQ(ε), Agarwal et al. 2021", sourced="run by run"),
    Column(agent="otrainbow_kielak2020", title="OTRainbow, Kielak 2020", sourced="printed"),
    Column(agent="curl_agarwal2021", title="CURL, Agarwal et al. 2021", sourced="run by run"),
    Column(agent="spr_agarwal2021", title="SPR, Agarwal et al. 2021", sourced="run by run"),
)


def columns_of(game: str) -> Iterator[tuple[Column, Figure]]:
    """Yield each column with its figure of a game; none for a game outside the 26."""
    found = curves(game)
    for column in COLUMNS:
        for figure in found.get((column.study, column.agent), ()):
            yield column, figure
