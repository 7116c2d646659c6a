"""Briefs that tests of engines write from, and what stands in the pictures that come of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.engines.base import Brief, Fact, SourceText
from pipeline.render.picture_types import DrawnText

if TYPE_CHECKING:
    from pipeline.render.picture_types import PicturePlan

URL = "https://example.com/news"


def brief_of(*quotes: str, title: str = "Tram approved", url: str = URL) -> tuple[Brief, SourceText]:
    """A brief whose facts are these sentences, which are its source."""
    facts: list[Fact] = []
    text = ""
    for place, quote in enumerate(quotes):
        facts.append(Fact(f"f{place}", quote, quote, len(text), len(text) + len(quote)))
        text += quote + "\n"
    return Brief(title, "en", url, tuple(facts)), SourceText(title, text, url)


def blocks(picture: PicturePlan) -> list[DrawnText]:
    return [item for item in picture.items if isinstance(item, DrawnText)]


def said(item: DrawnText) -> str:
    return " ".join(line.text for line in item.block.lines)
