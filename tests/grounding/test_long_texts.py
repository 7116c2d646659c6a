"""What a source can do to the reading of its numbers: lists, tables and texts of megabytes."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from pipeline.grounding import find_unsupported_number_texts, find_unsupported_numbers
from pipeline.grounding.quantities import clear_cache, parse_numbers
from tests.timing import least_of

if TYPE_CHECKING:
    from collections.abc import Callable

_DRAFT = "On 7 March 42 people paid 12,345.67 dollars, 36 percent of 991 in 3 hours."


@pytest.mark.parametrize("language", ["it", "en", ""])
def test_numbers_of_a_list_keep_few_meanings(language: str) -> None:
    text = ", ".join(f"{number}.{number + 335}" for number in range(10, 40))
    assert max(len(one.readings) for one in parse_numbers(text, language).quantities) <= 8


def test_list_of_prices_keeps_its_unit() -> None:
    assert find_unsupported_number_texts("10.5 million euros", "10.5, 11.5 or 12.5 million euros") == ()


@pytest.mark.parametrize(
    "text",
    ["1.2.3万", "1,2345万", "1.2,3億", "9" * 5000 + "万", "1" + "兆" * 500, "1.2.3万4億"],
)
def test_what_is_no_number_before_a_sign_is_a_label(text: str) -> None:
    assert parse_numbers(text).quantities[0].readings == []
    assert find_unsupported_number_texts(text, text) == ()


def test_number_with_signs_is_still_read() -> None:
    (one,) = parse_numbers("1億2,000万").quantities
    assert [reading.value for reading in one.readings] == [120_000_000]


@pytest.mark.parametrize("language", ["", "de", "en", "es", "fr"])
@pytest.mark.parametrize("count", [6, 5000])
def test_three_digit_numbers_in_a_row_are_a_list(language: str, count: int) -> None:
    found = parse_numbers("512 " * count, language).quantities
    assert [[reading.plain for reading in one.readings] for one in found] == [[512]] * count


@pytest.mark.parametrize("language", ["", "de", "en", "es", "fr"])
def test_spaces_set_thousands_apart(language: str) -> None:
    (one,) = parse_numbers("12 345 678", language).quantities
    assert [reading.plain for reading in one.readings] == [12_345_678]


def _table() -> str:
    return "\n".join(f"{row}\t{row % 97}\t{row * 7 % 1000} 0{row % 10}  {row * 31}" for row in range(9_000))


def _line() -> str:
    return " ".join(f"0{row % 10} ({row % 900}) 42" for row in range(18_000))


def _dates() -> str:
    return " ".join(f"On {day % 28 + 1} March they met at 9 and paid 42." for day in range(6_000))


def _three_digits() -> str:
    return "512 " * 50_000


def _scales() -> str:
    return "hundred million " * 13_000


@pytest.mark.parametrize("text", [_table, _line, _dates, _three_digits, _scales])
@pytest.mark.parametrize("length", [40_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_long_sources_take_time_by_their_length(text: Callable[[], str], length: int) -> None:
    whole = text()[:length]
    assert len(whole) == length
    quarter = whole[: len(whole) // 4]

    def read(source: str) -> object:
        clear_cache()
        return find_unsupported_numbers(_DRAFT, source, language="en", source_language="fr")

    # A collection goes over all that the process holds, which isn't the text's doing.
    gc.disable()
    try:
        _, short = least_of(3, lambda: read(quarter))
        _, long = least_of(3, lambda: read(whole))
    finally:
        gc.enable()
    # Four times the text: work that grows by the square takes sixteen times as long.
    assert long < 8 * short


def test_beyond_what_is_read_numbers_are_found_as_written() -> None:
    source = "So it goes on. " * 40_000 + "They paid 4,711 euros for 12.5 percent."
    assert find_unsupported_number_texts("They paid 4,711 euros for 12.5 percent.", source) == ()
    assert find_unsupported_number_texts("They paid 711 euros, 2.5 percent or 4,711 dollars.", source) == (
        "711 euros",
        "2.5 percent",
        "4,711 dollars",
    )
