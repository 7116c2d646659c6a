"""The weighted count of X, by the cases that its documents publish and some of our own."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text.weighted_length import weighted_length


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", 0, id="empty"),
        pytest.param("This is a test.", 15, id="ascii"),
        pytest.param("http://test.com", 23, id="http"),
        pytest.param("https://test.com", 23, id="https"),
        pytest.param("test.com", 23, id="bare-domain"),
        pytest.param("Test https://test.com test https://test.com test.com test", 86, id="several-links"),
        pytest.param("https://example.com/" + "a" * 400, 23, id="long-link"),
        pytest.param("(https://en.wikipedia.org/wiki/A_(b)).", 23 + 3, id="brackets-around-link"),
        pytest.param("see example.com.", 4 + 23 + 1, id="full-stop-after-link"),
        pytest.param("https://example.com日本", 23 + 4, id="cjk-ends-link"),
        pytest.param("me@example.com", 14, id="mail-address"),
        pytest.param("file.nosuchtld", 14, id="no-top-level-domain"),
        pytest.param("https://a.nosuchtld", 23, id="unknown-domain-counts-at-least-as-link"),
        pytest.param("https://a.nosuchtld/" + "a" * 30, 50, id="unknown-domain-counts-as-written"),
        pytest.param("저찀쯿쿿", 8, id="hangul"),
        pytest.param("日本語。", 8, id="cjk"),
        pytest.param("H\U0001f431☺", 5, id="emoji-and-symbol"),
        pytest.param("👨‍👩‍👧‍👦", 2, id="family"),
        pytest.param("👍🏽", 2, id="skin-tone"),
        pytest.param("👩🏽‍🚀", 2, id="skin-tone-and-joiner"),
        pytest.param("🏳️‍🌈", 2, id="rainbow"),
        pytest.param("🇩🇪🇫🇷", 4, id="flags"),
        pytest.param("🏴󠁧󠁢󠁥󠁮󠁧󠁿", 2, id="flag-of-tags"),
        pytest.param("1️⃣", 2, id="keycap"),
        pytest.param("©", 1, id="plain-copyright"),
        pytest.param("©️", 2, id="coloured-copyright"),
        pytest.param("cafe\u0301", 4, id="composed-first"),
        pytest.param("\u10ff\u1100", 3, id="edge-4351"),
        pytest.param("\u1fff\u2000\u200d\u200e", 6, id="edges-8192-8205"),
        pytest.param("\u200f\u2010\u201f\u2020", 6, id="edges-8208-8223"),
        pytest.param("\u2031\u2032\u2037\u2038", 6, id="edges-8242-8247"),
        pytest.param("“so” – it’s…", 13, id="typographic-marks"),
        pytest.param("a\nb", 3, id="line-end"),
    ],
)
def test_weighted_length_counts_as_x_does(text: str, expected: int) -> None:
    assert weighted_length(text) == expected


@given(
    st.text(
        alphabet=st.characters(
            max_codepoint=0x10FF, exclude_characters=".:\u00a9\u00ae", exclude_categories=("Mn", "Cs")
        )
    )
)
def test_light_scripts_count_one_each(text: str) -> None:
    assert weighted_length(text) == len(unicodedata.normalize("NFC", text))


@given(st.text())
def test_weight_lies_between_nothing_and_a_link_for_each_character(text: str) -> None:
    normal = unicodedata.normalize("NFC", text)

    assert weighted_length(text) == weighted_length(normal)
    assert 0 <= weighted_length(text) <= 23 * len(normal)
