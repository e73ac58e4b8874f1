"""The published columns of Atari 100k that a score after 400,000 frames stands beside, and their sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from atari_dqn.compare.reference.tables import Figure, curves

FRAMES = 400_000
"""The budget: 100,000 agent steps."""
Sourced = Literal["run by run", "printed", "recalled"]
"""A mean over released runs; a number printed in papers; or one from memory, confirmed in aggregate alone."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """One published agent over the 26 games."""

    agent: str
    """As scores.csv has it."""
    title: str
    sourced: Sourced

    @property
    def study(self) -> str:
        """The study of sources.toml."""
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
    """Yield each column with its figure of a game; nothing for a game outside the 26."""
    found = curves(game)
    for column in COLUMNS:
        for figure in found.get((column.study, column.agent), ()):
            yield column, figure
