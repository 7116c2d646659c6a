"""Computes the cost of a call by a dated table of prices (`anthropic_prices.json`)."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Mode = Literal["live", "batch"]

_TABLE = Path(__file__).with_name("anthropic_prices.json")
# The date at the end of a model's name: "-20261115".
_DATED = re.compile(r"-\d{8}$")


@dataclass(frozen=True)
class Tokens:
    """The tokens of one answer; `input` excludes those that were read from the cache or written to it."""

    input: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    cache_read: int = 0
    output: int = 0
    thinking: int = 0
    """Counted in `output` too."""

    @property
    def prompt(self) -> int:
        """The length of the whole prompt, by which a price tier is chosen."""
        return self.input + self.cache_write_5m + self.cache_write_1h + self.cache_read


@dataclass(frozen=True)
class Tier:
    """The prices of prompts up to a length, in US dollars per million tokens."""

    up_to_prompt_tokens: int | None
    """The longest prompt at these prices, or `None` without an upper bound."""
    input: Fraction
    output: Fraction


@dataclass(frozen=True)
class PriceTable:
    """Prices by model, with the factors for the cache and for batches."""

    id: str
    models: Mapping[str, tuple[Tier, ...]]
    factors: Mapping[str, Fraction]

    def tiers_of(self, model: str) -> tuple[tuple[Tier, ...], bool]:
        """Return the model's tiers and True, or those of the most expensive model and False for an unknown one."""
        known = self.models.get(model) or self.models.get(_DATED.sub("", model))
        if known is not None:
            return known, True
        return max(self.models.values(), key=lambda tiers: (tiers[-1].output, tiers[-1].input)), False


@cache
def table() -> PriceTable:
    """Return the table of prices, which is read once."""
    raw_table = json.loads(_TABLE.read_text(encoding="utf-8"))
    return PriceTable(
        id=raw_table["id"],
        models={
            name: tuple(
                Tier(tier["up_to_prompt_tokens"], Fraction(tier["input"]), Fraction(tier["output"]))
                for tier in model["tiers"]
            )
            for name, model in raw_table["models"].items()
        },
        factors={name: Fraction(factor) for name, factor in raw_table["factors"].items()},
    )


def is_priced(model: str) -> bool:
    """Return whether the table names the model; other models are priced as the most expensive one."""
    return table().tiers_of(model)[1]


def cost_micro_usd(tokens: Tokens, model: str, mode: Mode = "live") -> int:
    """Return the cost in millionths of a US dollar, rounded up.

    A price in dollars per million tokens is the same number of millionths of a dollar per token.
    """
    prices = table()
    tiers, _ = prices.tiers_of(model)
    tier = next(
        tier
        for tier in tiers
        if tier.up_to_prompt_tokens is None or tokens.prompt <= tier.up_to_prompt_tokens
    )
    factors = prices.factors
    prompt = (
        tokens.input
        + tokens.cache_write_5m * factors["cache_write_5m"]
        + tokens.cache_write_1h * factors["cache_write_1h"]
        + tokens.cache_read * factors["cache_read"]
    )
    cost = prompt * tier.input + tokens.output * tier.output
    return math.ceil(cost * factors["batch"] if mode == "batch" else cost)
