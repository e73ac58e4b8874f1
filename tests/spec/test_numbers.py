import math

import pytest

from atari_dqn.spec.numbers import real_number, whole_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("50M", 50_000_000),
        ("2.4M", 2_400_000),
        ("820k", 820_000),
        ("1.5m", 1_500_000),
        ("1e6", 1_000_000),
        ("2.5E6", 2_500_000),
        ("1_000", 1_000),
        ("2,400,000", 2_400_000),
        (" 7 ", 7),
        ("-5", -5),
    ],
)
def test_whole_number_is_parsed_in_common_notations(text: str, number: int) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize(
    "text", ["", "many", "1.5", "1.2345k", "1e-3", "5G", "2,4M", "1__0", "0x10", "nan", "9" * 5_000, "٣"]
)
def test_text_that_is_no_whole_number_is_none(text: str) -> None:
    assert whole_number(text) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("20k", 20_000.0),
        ("1.2345k", 1_234.5),
        ("2,400", 2_400.0),
        ("1e-4", 1e-4),
        ("-.5", -0.5),
        ("inf", math.inf),
    ],
)
def test_real_number_is_parsed_in_common_notations_too(text: str, number: float) -> None:
    assert real_number(text) == number


@pytest.mark.parametrize("text", ["", "many", "5G", "1__0", "0x10"])
def test_text_that_is_no_number_is_none(text: str) -> None:
    assert real_number(text) is None
