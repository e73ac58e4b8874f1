import pytest

from atari_dqn.spec.numbers import whole_number


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
