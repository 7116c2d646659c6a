"""What a call costs."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.writers.prices import Mode, Tokens, cost_micro_usd, is_priced, table


@pytest.mark.parametrize(
    ("tokens", "model", "mode", "cost"),
    [
        (Tokens(input=1_000_000), "claude-sonnet-5-5", "live", 2_000_000),
        (Tokens(output=1_000_000), "claude-opus-5-5", "live", 20_000_000),
        (Tokens(input=1_000_000), "claude-sonnet-5-5", "batch", 1_000_000),
        (Tokens(cache_write_5m=1_000_000), "claude-sonnet-5-5", "live", 2_500_000),
        (Tokens(cache_write_1h=1_000_000), "claude-sonnet-5-5", "live", 4_000_000),
        (Tokens(cache_read=1_000_000), "claude-sonnet-5-5", "live", 200_000),
        (Tokens(input=100_000, output=1_000), "claude-haiku-5-5", "live", 10_500),
        (Tokens(input=100_001, output=1_000), "claude-haiku-5-5", "live", 52_501),
        (Tokens(input=1, cache_read=100_000), "claude-haiku-5-5", "live", 5_001),
        (Tokens(input=50_000, cache_write_5m=25_000, cache_read=25_000), "claude-haiku-5-5", "live", 8_375),
        (Tokens(input=1), "claude-haiku-5-5", "live", 1),
        (Tokens(), "claude-haiku-5-5", "live", 0),
        (Tokens(input=1_000_000), "claude-sonnet-5-5-20261101", "live", 2_000_000),
        (Tokens(input=1_000, output=1_000), "claude-unheard-of-9", "live", 60_000),
    ],
)
def test_cost_is_whole_and_rounded_up(tokens: Tokens, model: str, mode: Mode, cost: int) -> None:
    assert cost_micro_usd(tokens, model, mode) == cost


def test_table_has_a_date_and_knows_its_models() -> None:
    assert table().id == "anthropic-2026-11-20"
    assert [
        is_priced(model) for model in ("claude-haiku-5-5", "claude-haiku-5-5-20261101", "claude-haiku-9")
    ] == [
        True,
        True,
        False,
    ]


@given(st.integers(0, 10**7), st.integers(0, 10**6), st.sampled_from(sorted(table().models)))
def test_cost_is_never_below_the_price_and_less_than_a_millionth_above(
    prompt: int, output: int, model: str
) -> None:
    tiers, _ = table().tiers_of(model)
    tier = next(t for t in tiers if t.up_to_prompt_tokens is None or prompt <= t.up_to_prompt_tokens)
    exact = prompt * tier.input + output * tier.output

    assert Fraction(0) <= cost_micro_usd(Tokens(input=prompt, output=output), model) - exact < 1
