"""Figures on pages are those of the files that the pages name."""

import json
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pytest

DOCS = Path(__file__).parents[1] / "docs"
COMPILED = ("dqn", "rainbow", "der")


def kept(name: str) -> Any:
    return json.loads((DOCS / "results" / f"{name}.json").read_text())


def fuzzed() -> str:
    return f"{sum(reader['executions'] for reader in kept('fuzz')['readers']):,} inputs"


def compiled(name: str) -> dict[str, str]:
    """Compute how much longer a compiled update takes, as the median of the ratios within a round."""
    rounds = kept(name)["rounds_milliseconds"]
    return {
        agent: f"{median(row[f'{agent}, compiled'] / row[agent] for row in rounds):.2f}" for agent in COMPILED
    }


def compiled_in_algorithms() -> str:
    dqn, rainbow, der = compiled("updates_two_threads").values()
    return f"{dqn} times as long for plain DQN, {rainbow} times for Rainbow, and {der} times for Rainbow on"


def compiled_in_decision() -> str:
    one, two = compiled("updates"), compiled("updates_two_threads")
    return (
        f"{one['der']}, {one['rainbow']} and {one['dqn']} times as long as updates with the kernels "
        f"(two threads: {two['der']}, {two['rainbow']} and {two['dqn']};"
    )


def share_of_gradients() -> str:
    rounds = kept("versus_avx2_track_a")["rounds"]["ours A"]
    return f"Of Track A's time {median(each['shares']['learn'] for each in rounds):.0%}".replace("%", " %")


def most_used_by_others() -> str:
    names = ("track_a", "eight", "rainbow", "c51", "pong_quick")
    most = max(kept(f"versus_avx2_{name}")["most_others_cores"] for name in names)
    return f"Other programs used at most {most} of a core"


def convolutions(network: str, version: str) -> str:
    """Write the row of a network in the table of the kernels' last change."""
    found = kept("convolutions")["convolutions"]
    times = [found[isa][network]["median_milliseconds"] for isa in ("avx512", "avx2")]
    return " | ".join(f"{each[f'{version}, {way}']:.2f}" for each in times for way in ("forward", "backward"))


def convolutions_on(screen: str, file: str) -> str:
    """Write the row of a kind of screens in the table of groups of equal patches."""
    found = kept(f"convolutions_{file}")["convolutions"]["avx2"][f"nature, {screen}"]
    times = [
        found["median_milliseconds"][f"{version}, {way}"]
        for way in ("forward", "backward")
        for version in ("earlier", "here")
    ]
    share = f"{found['share_of_patches_that_differ']:.0%}".replace("%", " %")
    return f"| {screen} | {share} | " + " | ".join(f"{each:.2f}" for each in times)


def of_trainings(file: str) -> str:
    """Write the ratios of whole trainings to the version before: median (lowest to highest) of each."""
    ratios = kept(f"before_after_{file}")["speed"]["ratios"].values()
    return " | ".join(f"{median(each):.2f} ({min(each):.2f} to {max(each):.2f})" for each in ratios)


SCREENS = [
    ("results/speed.md", partial(convolutions_on, screen, "games"))
    for screen in (
        "pong", "breakout", "seaquest", "asterix", "space_invaders", "qbert", "freeway", "ms_pacman"
    )
]  # fmt: skip


CONVOLUTIONS = [
    ("results/speed.md", partial(convolutions, network, version))
    for network in ("nature", "dopamine", "data_efficient")
    for version in ("earlier", "here")
]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        *CONVOLUTIONS,
        *SCREENS,
        ("results/speed.md", partial(convolutions_on, "drawn", "drawn")),
        *(("results/speed.md", partial(of_trainings, file)) for file in ("games", "groups", "ms_pacman")),
        ("results/reliability.md", fuzzed),
        ("algorithms.md", compiled_in_algorithms),
        ("decisions/0031-compiling-is-a-key.md", compiled_in_decision),
        ("results/speed.md", share_of_gradients),
        ("results/speed.md", most_used_by_others),
    ],
)
def test_page_has_the_figure_of_its_file(page: str, text: Any) -> None:
    assert text() in (DOCS / page).read_text(encoding="utf-8").replace("\n", " ")


@pytest.mark.parametrize(
    ("file", "ours", "theirs", "others"),
    [
        ("track_a", "ours A", "SB3 DQN", "Stable-Baselines3's"),
        ("track_a", "ours A", "CleanRL dqn_atari", "CleanRL's"),
        ("eight", "ours A, 8 environments", "SB3 DQN, 8 environments", "Stable-Baselines3's on 8"),
        ("c51", "ours C51", "CleanRL c51_atari", "CleanRL's"),
        ("rainbow", "ours Rainbow", "CleanRL rainbow_atari", "CleanRL's"),
    ],
)
def test_ratio_of_the_third_generation_is_that_of_its_file(
    file: str, ours: str, theirs: str, others: str
) -> None:
    found = kept(f"versus_avx2_{file}_epyc3")
    ratios = found["ratios"][f"{ours} / {theirs}"]
    text = (
        f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) {others} "
        f"({found['median_frames_per_second'][theirs]:,.0f})"
    )
    assert text in (DOCS / "results/speed.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "system", "label"),
    [
        ("track_a", "ours A", "Track A, 1 environment"),
        ("track_a", "SB3 DQN", "Stable-Baselines3 2.9, 1 environment"),
        ("track_a", "CleanRL dqn_atari", "CleanRL `dqn_atari.py`"),
        ("eight", "ours A, 8 environments", "Track A, 8 environments"),
        ("eight", "SB3 DQN, 8 environments", "Stable-Baselines3 2.9, 8 environments"),
        ("c51", "ours C51", "C51"),
        ("c51", "CleanRL c51_atari", "CleanRL `c51_atari.py`"),
        ("rainbow", "ours Rainbow", "Rainbow"),
        ("rainbow", "CleanRL rainbow_atari", "CleanRL `rainbow_atari.py`"),
        ("pong_quick", "pong_quick", "`pong_quick`"),
    ],
)
def test_row_of_avx2_is_that_of_its_file(file: str, system: str, label: str) -> None:
    found = kept(f"versus_avx2_{file}")
    alone, busy = (found["median_frames_per_second"][name] for name in (system, f"{system}, 1 busy"))
    ratio = found["median_ratio"][f"{system}, 1 busy / {system}"]
    row = f"| {label} | {alone:,.0f} | {busy:,.0f} | {ratio:.2f} |"
    assert row in (DOCS / "results/speed.md").read_text(encoding="utf-8")
