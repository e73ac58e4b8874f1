"""Figures of the page on speed are those of the files that it names; more in test_measured_figures.py."""

from collections.abc import Sequence
from statistics import median
from typing import Any

import pytest
from evidence import cells, disagreements, kept, text_of

PAGE = "results/speed.md"
THIRD = "**2-core AMD EPYC of the third generation (AVX2)"
BUSY_THIRD = "| | frames/s next to a busy program | of its own figure alone | times |"
RATIOS_AVX2 = "| times | alone | next to a busy program |"
FOURTH = "**The same on a 2-core AMD EPYC of the fourth generation, held to AVX2, 2026-11-26 and 27**"
ANOTHER = "**2-core AMD EPYC (AVX-512 with bf16), another machine"
FIRST = "**2-core AMD EPYC (AVX-512 with bf16), nothing else running, 2026-11-24**"
XEON = "**2-core Intel Xeon (AMX), shared with other work, before there were kernels, 2026-11-21**"
EIGHT, SB3_EIGHT = "ours A, 8 environments", "SB3 DQN, 8 environments"


def spread(values: Sequence[float]) -> list[float]:
    """Compute median, lowest and highest."""
    return [median(values), min(values), max(values)]


def speeds(file: str, *systems: str) -> list[float]:
    return [kept(file)["median_frames_per_second"][system] for system in systems]


def ratio(file: str, ours: str, theirs: str) -> float:
    return float(kept(file)["median_ratio"][f"{ours} / {theirs}"])


def ratios(file: str, ours: str, theirs: str) -> list[float]:
    return spread(kept(file)["ratios"][f"{ours} / {theirs}"])


@pytest.mark.parametrize(
    ("name", "system", "label"),
    [
        ("track_a", "ours A", "Track A, 1 environment"),
        ("eight", EIGHT, "Track A, 8 environments"),
        ("c51", "ours C51", "C51"),
        ("rainbow", "ours Rainbow", "Rainbow"),
        ("pong_quick", "pong_quick", "`pong_quick`"),
    ],
)
def test_speed_of_the_third_generation_is_that_of_its_file(name: str, system: str, label: str) -> None:
    alone = cells(PAGE, THIRD, label).split("|")[0]
    assert disagreements(alone, speeds(f"versus_avx2_{name}_epyc3", system)) == []


@pytest.mark.parametrize(
    ("system", "label"),
    [("SB3 DQN", "Stable-Baselines3 2.9"), ("CleanRL dqn_atari", "CleanRL `dqn_atari.py`")],
)
def test_others_next_to_a_busy_program_are_those_of_the_file(system: str, label: str) -> None:
    file, busy = "versus_avx2_track_a_epyc3", f"{system}, 1 busy"
    expected = [*speeds(file, busy), ratio(file, busy, system)]
    assert disagreements(cells(PAGE, BUSY_THIRD, label), expected) == []


def test_track_a_next_to_a_busy_program_is_that_of_the_file() -> None:
    file, ours = "versus_avx2_track_a_epyc3", "ours A, 1 busy"
    expected = [*speeds(file, ours), ratio(file, ours, "ours A")]
    for theirs in ("SB3 DQN", "CleanRL dqn_atari"):
        expected += ratios(file, ours, f"{theirs}, 1 busy")
    assert disagreements(cells(PAGE, BUSY_THIRD, "Track A, 1 environment"), expected) == []


def test_pong_quick_next_to_a_busy_program_is_that_of_the_file() -> None:
    file, ours = "versus_avx2_pong_quick_epyc3", "pong_quick, 1 busy"
    expected = [*speeds(file, ours), ratio(file, ours, "pong_quick")]
    assert disagreements(cells(PAGE, BUSY_THIRD, "`pong_quick`"), expected) == []


@pytest.mark.parametrize(
    ("name", "pairs", "label"),
    [
        ("track_a", [("ours A", "SB3 DQN"), ("ours A", "CleanRL dqn_atari")],
         "Track A over Stable-Baselines3 · CleanRL"),
        ("eight", [(EIGHT, SB3_EIGHT)], "Track A over Stable-Baselines3, 8 environments each"),
        ("c51", [("ours C51", "CleanRL c51_atari")], "C51 over CleanRL's"),
        ("rainbow", [("ours Rainbow", "CleanRL rainbow_atari")], "Rainbow over CleanRL's"),
    ],
)  # fmt: skip
def test_ratio_held_to_avx2_is_that_of_its_file(name: str, pairs: list[tuple[str, str]], label: str) -> None:
    file = f"versus_avx2_{name}"
    expected = [ratio(file, *pair) for pair in pairs]
    expected += [ratio(file, *(f"{system}, 1 busy" for system in pair)) for pair in pairs]
    assert disagreements(cells(PAGE, RATIOS_AVX2, label), expected) == []


@pytest.mark.parametrize(
    ("name", "ours", "theirs", "label"),
    [
        ("eight", EIGHT, SB3_EIGHT, "Track A, 8 environments, over Stable-Baselines3's ({}, {})"),
        ("c51", "ours C51", "CleanRL c51_atari", "C51 over CleanRL's ({}, {})"),
        ("rainbow", "ours Rainbow", "CleanRL rainbow_atari", "Rainbow over CleanRL's ({}, {})"),
    ],
)
def test_row_of_the_fourth_generation_is_that_of_its_file(
    name: str, ours: str, theirs: str, label: str
) -> None:
    file, busy = f"versus_avx2_{name}_epyc4", (f"{ours}, 1 busy", f"{theirs}, 1 busy")
    others = [f"{speed:,.0f}" for speed in speeds(file, theirs, busy[1])]
    expected = [*speeds(file, ours, busy[0]), ratio(file, ours, theirs), ratio(file, *busy)]
    assert disagreements(cells(PAGE, FOURTH, label.format(*others)), expected) == []


def of_eight_environments(file: str, system: str) -> str:
    """Find the name of a system with eight environments, which earlier versions wrote in another way."""
    (found,) = (name for name in kept(file)["median_frames_per_second"] if name.startswith(f"{system}, 8 "))
    return str(found)


def of_versus(file: str, after: str) -> list[tuple[str, str, str, list[float]]]:
    """List the rows of a table of `versus.py`: the text before it, label, file and the figures expected."""
    eight, sb3_eight = of_eight_environments(file, "ours A"), of_eight_environments(file, "SB3 DQN")
    cleanrl, rainbow = "CleanRL dqn_atari", "CleanRL rainbow_atari"
    row_of_eight = [*speeds(file, eight), ratio(file, eight, "SB3 DQN")]
    if file != "versus_xeon":
        row_of_eight += [ratio(file, eight, sb3_eight), 8, *speeds(file, sb3_eight)]
    return [
        (after, "Track A, 1 environment, fp32", file,
         [*speeds(file, "ours A"), ratio(file, "ours A", "SB3 DQN"), ratio(file, "ours A", cleanrl)]),
        (after, "Track A, 8 environments, bf16", file, [*row_of_eight, ratio(file, eight, cleanrl)]),
        (after, "Rainbow, 1 environment, fp32", file,
         [*speeds(file, "ours Rainbow"), ratio(file, "ours Rainbow", rainbow), *speeds(file, rainbow)]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("after", "label", "file", "expected"),
    [
        *of_versus("versus", FIRST),
        *of_versus("versus_avx512_epyc", ANOTHER),
        *of_versus("versus_xeon", XEON),
        (FIRST, "Track B, 1 environment, fp32", "versus", speeds("versus", "ours B")),
        (XEON, "Track B, 1 environment, fp32", "versus_xeon", speeds("versus_xeon", "ours B")),
        (FIRST, "Rainbow, 1 environment, torso in bf16", "versus",
         [*speeds("versus", "ours Rainbow, bf16"),
          ratio("versus", "ours Rainbow, bf16", "CleanRL rainbow_atari")]),
    ],
)  # fmt: skip
def test_row_of_a_machine_is_that_of_its_file(
    after: str, label: str, file: str, expected: list[float]
) -> None:
    row = cells(PAGE, after, label)
    if label.startswith("Track A, 1"):  # CleanRL's frames/s are in this row alone
        expected = [*expected, *speeds(file, "CleanRL dqn_atari")]
    assert disagreements(row, expected) == []


@pytest.mark.parametrize(("file", "after"), [("versus", FIRST), ("versus_avx512_epyc", ANOTHER)])
def test_heads_have_the_speed_of_stable_baselines(file: str, after: str) -> None:
    rest = text_of(PAGE).partition(after)[2]
    assert rest.partition("times Stable-Baselines3 2.9 (")[2].startswith(f"{speeds(file, 'SB3 DQN')[0]:.0f})")


def test_track_b_makes_the_share_of_track_a_s_frames_that_the_files_have() -> None:
    here, nine = (ratio(file, "ours B", "ours A") for file in ("versus", "tracks"))
    assert f"makes {here:.2f} of Track A's frames/s there, {nine:.2f} over nine rounds" in text_of(PAGE)


def slowest_over_fastest(file: str) -> list[float]:
    return [
        min(run["frames_per_second"] for run in runs) / max(run["frames_per_second"] for run in runs)
        for runs in kept(file)["rounds"].values()
    ]


def test_spread_of_the_third_generation_is_that_of_its_files() -> None:
    names = ("track_a", "eight", "c51", "rainbow", "pong_quick")
    shares = [share for name in names for share in slowest_over_fastest(f"versus_avx2_{name}_epyc3")]
    assert f"is {min(shares):.2f} to {max(shares):.2f} times the fastest" in text_of(PAGE)


def test_spread_of_the_fourth_generation_is_that_of_its_files() -> None:
    names = ("eight", "c51", "rainbow", "pong_quick")
    least = min(share for name in names for share in slowest_over_fastest(f"versus_avx2_{name}_epyc4"))
    eight = "from {1:.2f} to {2:.2f}".format(*ratios("versus_avx2_eight_epyc4", EIGHT, SB3_EIGHT))
    c51 = "from {1:.2f} to {2:.2f}".format(*ratios("versus_avx2_c51_epyc4", "ours C51", "CleanRL c51_atari"))
    text = text_of(PAGE)
    assert f"is up to {1 / least:.1f} times the lowest" in text
    assert f"{eight} for 8 environments and {c51} for C51" in text


def pairs(file: str) -> Any:
    return kept(f"before_after_{file}")["speed"]["ratios"]


@pytest.mark.parametrize("file", ["speed", "speed_avx512"])
def test_ratios_to_the_version_before_its_restructuring_are_those_of_their_file(file: str) -> None:
    row = " | ".join("{:.2f} ({:.2f} to {:.2f})".format(*spread(each)) for each in pairs(file).values())
    assert f"| {row} |" in text_of(PAGE)


@pytest.mark.parametrize(("isa", "label"), [("avx2", "AVX2"), ("avx512", "AVX-512")])
def test_ratios_of_whole_trainings_are_those_of_their_file(isa: str, label: str) -> None:
    row = cells(PAGE, "| | `pong_quick` | `atari100k_der` | Track A |", label)
    expected = [figure for each in pairs(f"kernels_{isa}").values() for figure in spread(each)]
    assert disagreements(row, expected) == []


@pytest.mark.parametrize(("spec", "name"), [("atari100k_drq_eps", "DrQ(ε)"), ("spr", "SPR")])
def test_ratio_of_agents_that_shift_frames_is_that_of_its_file(spec: str, name: str) -> None:
    row = "{:.2f} ({:.2f} to {:.2f})".format(*spread(pairs("floats_avx512")[spec]))
    assert f"{name} {row}" in text_of(PAGE)


SCREENS = (
    "pong", "breakout", "seaquest", "asterix", "space_invaders", "qbert", "freeway", "ms_pacman", "drawn"
)  # fmt: skip


@pytest.mark.parametrize("screen", SCREENS)
def test_convolutions_with_avx512_are_those_of_their_file(screen: str) -> None:
    file = "drawn" if screen == "drawn" else "games"
    found = kept(f"convolutions_{file}_avx512")["convolutions"]["avx512"]
    times = [
        found[f"{network}, {screen}"]["median_milliseconds"]
        for network in ("nature", "dopamine", "data_efficient")
    ]
    expected = [
        each[f"earlier, {way}"] / each[f"here, {way}"] for each in times for way in ("forward", "backward")
    ]
    after = "| screens | `nature` | `dopamine` | `data_efficient` |"
    assert disagreements(cells(PAGE, after, screen), expected) == []
