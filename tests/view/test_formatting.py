import math

import pytest

from atari_dqn.formatting import count, duration, measure, percentage, plural, score, size, wrapped


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.4, "59s"), (59.6, "1m 00s"), (545, "9m 05s"), (48_000, "13h 20m"), (442_800, "5d 03h")],
)
def test_duration_has_its_two_largest_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1k"),
        (12_345, "12.3k"),
        (-12_345, "-12.3k"),
        (999_999, "1000k"),
        (1.25e6, "1.25M"),
        (5e7, "50M"),
    ],
)
def test_count_is_short(number: float, text: str) -> None:
    assert count(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.000"), (0.0123, "0.012"), (-1.5, "-1.500"), (12.345, "12.35"), (1234.5, "1234"),
        (1e-5, "1.0e-05"), (2.5e6, "2.5e+06"), (math.nan, "-"), (math.inf, "inf"), (-math.inf, "-inf"),
    ],
)  # fmt: skip
def test_measure_keeps_the_digits_that_count(number: float, text: str) -> None:
    assert measure(number) == text


@pytest.mark.parametrize(
    ("value", "text"), [(-20.25, "-20.2"), (999.94, "999.9"), (20_182.4, "20,182"), (math.nan, "-")]
)
def test_score_keeps_a_decimal_where_it_matters(value: float, text: str) -> None:
    assert score(value) == text


@pytest.mark.parametrize(("number", "text"), [(0, "0 runs"), (1, "1 run"), (1_200, "1,200 runs")])
def test_plural_has_an_s_unless_there_is_one(number: int, text: str) -> None:
    assert plural(number, "run") == text


@pytest.mark.parametrize(("number", "text"), [(33_700_000, "33.7 MB"), (7_084_000_000, "7.08 GB")])
def test_size_is_in_powers_of_ten(number: int, text: str) -> None:
    assert size(number) == text


@pytest.mark.parametrize(
    ("share", "decimals", "text"),
    [(0.4521, 1, "45.2%"), (0.0, 1, "0.0%"), (1.0, 0, "100%"), (math.nan, 1, "-")],
)
def test_percentage_has_the_decimals_asked_for(share: float, decimals: int, text: str) -> None:
    assert percentage(share, decimals=decimals) == text


def test_count_that_is_none_is_a_dash() -> None:
    assert count(math.nan) == "-"


def test_long_line_is_broken_at_80_columns_with_its_indent_before_each_part() -> None:
    lines = wrapped("word " * 40, indent="# ", first_indent="# ").splitlines()
    assert [line[:6] for line in lines] == ["# word"] * 3
    assert max(map(len, lines)) <= 80
