"""What a writer is shown of a source: all but the orders to a machine, which the brief names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline.text.prompt_injection import gives_instructions, shows_signs, without_instructions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.engines.base import Brief, SourceText

_ORDERS_MOST: Final = 12
_ORDER_CHARACTERS: Final = 600
"""How many orders are kept with a brief, and how much of each."""


def screened(source: SourceText) -> tuple[SourceText, tuple[str, ...]]:
    """The source without orders to a machine, and the orders.

    What stays stands at its old place. A title or an author that gives orders is none.
    """
    text, orders = without_instructions(source.text)
    _, hidden = without_instructions(source.hidden)
    title, author = ("" if gives_instructions(line) else line for line in (source.title, source.author))
    lines = [line for line in (source.title, source.author) if line and line not in {title, author}]
    return replace(source, title=title, author=author, text=text), (*lines, *orders, *hidden)


def with_orders(brief: Brief, orders: Iterable[str], shown: Iterable[str]) -> Brief:
    """The brief that knows which orders were left out of `shown`, and whether a person has to look."""
    kept = tuple(order[:_ORDER_CHARACTERS] for order in orders)[:_ORDERS_MOST]
    is_suspect = brief.is_suspect or bool(kept) or any(map(shows_signs, shown))
    return replace(brief, orders=kept, is_suspect=is_suspect)
