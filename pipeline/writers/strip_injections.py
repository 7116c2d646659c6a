"""Removes orders to a machine from a source before a writer sees it; the brief names them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline.text.prompt_injection import gives_instructions, is_suspicious, without_instructions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.engines.base import Brief, SourceText

_MAX_ORDERS: Final = 12
_ORDER_CHARACTERS: Final = 600
"""How many orders are stored with a brief, and how many characters of each."""


def screen_source(source: SourceText) -> tuple[SourceText, tuple[str, ...]]:
    """Return the source without orders to a machine, and the orders.

    The rest of the text keeps its place. A title or an author that gives orders is emptied.
    """
    text, orders = without_instructions(source.text)
    _, hidden = without_instructions(source.hidden)
    title, author = ("" if gives_instructions(line) else line for line in (source.title, source.author))
    lines = [line for line in (source.title, source.author) if line and line not in {title, author}]
    return replace(source, title=title, author=author, text=text), (*lines, *orders, *hidden)


def with_orders(brief: Brief, orders: Iterable[str], texts: Iterable[str]) -> Brief:
    """Return the brief with the orders that were left out of `texts`, and whether a person has to look at it."""
    stored_orders = tuple(order[:_ORDER_CHARACTERS] for order in orders)[:_MAX_ORDERS]
    is_suspect = brief.is_suspect or bool(stored_orders) or any(map(is_suspicious, texts))
    return replace(brief, orders=stored_orders, is_suspect=is_suspect)
