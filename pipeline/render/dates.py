"""A date as people write it in their language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

# The pattern, then the months as they stand after a day.
_WAYS: Final[Mapping[str, tuple[str, str]]] = {
    "en": (
        "{day} {month} {year}",
        "January February March April May June July August September October November December",
    ),
    "en-us": (
        "{month} {day}, {year}",
        "January February March April May June July August September October November December",
    ),
    "de": (
        "{day}. {month} {year}",
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    ),
    "fr": (
        "{day} {month} {year}",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    ),
    "es": (
        "{day} de {month} de {year}",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    ),
    "it": (
        "{day} {month} {year}",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    ),
    "pt": (
        "{day} de {month} de {year}",
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    ),
    "nl": (
        "{day} {month} {year}",
        "januari februari maart april mei juni juli augustus september oktober november december",
    ),
    "ar": (
        "{day} {month} {year}",
        "يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر",
    ),
    "he": (
        "{day} ב{month} {year}",
        "ינואר פברואר מרץ אפריל מאי יוני יולי אוגוסט ספטמבר אוקטובר נובמבר דצמבר",
    ),
}


def say_date(on: date, language: str) -> str:
    """With the month in words where the language is known, else as ISO 8601 writes it."""
    tag = language.lower().replace("_", "-")
    way = _WAYS.get(tag) or _WAYS.get(tag.partition("-")[0])
    if way is None:
        return on.isoformat()
    pattern, months = way
    return pattern.format(day=on.day, month=months.split()[on.month - 1], year=on.year)
