"""Addresses in running text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text.links import ascii_url, find_links, is_same_address, without_links
from tests.timing import least_of


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("See https://a.com/x?y=1&z=2#t, or b.org.", ["https://a.com/x?y=1&z=2#t", "b.org"]),
        ("HTTP://A.COM/x", ["HTTP://A.COM/x"]),
        ("http://localhost:8000/x", ["http://localhost:8000/x"]),
        ("https://user:secret@a.com/x", ["https://user:secret@a.com/x"]),
        ("(https://a.com/b_(c))", ["https://a.com/b_(c)"]),
        ("<https://a.com/x>", ["https://a.com/x"]),
        ("a.com/x?y=1", ["a.com/x?y=1"]),
        ("me@a.com @a.com #a.com", []),
        ("ftp://a.com", []),
        ("1.5 e.g. U.S. v2.0.1", []),
        ("Yahoo.com!", ["Yahoo.com"]),
    ],
)
def test_find_links_finds_what_platforms_link(text: str, urls: list[str]) -> None:
    links = find_links(text)

    assert [link.url for link in links] == urls
    assert [text[link.start : link.end] for link in links] == urls
    assert [link.has_scheme for link in links] == ["://" in url for url in urls]


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from("htps:/.()comdea@-_1 "))))
def test_links_are_ordered_and_verbatim(text: str) -> None:
    links = find_links(text)

    assert [text[link.start : link.end] for link in links] == [link.url for link in links]
    assert all(first.end <= second.start for first, second in pairwise(links))


@pytest.mark.parametrize("length", [40_000, pytest.param(400_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "unit",
    ["a.", "https://", "(", "a", "1-", "a.com ", "http://a.com/(", "#", "@", "a-.", "http://a.com)", "é."],
)
def test_find_links_takes_linear_time(unit: str, length: int) -> None:
    text = unit * (length // len(unit))
    links, seconds = least_of(3, lambda: find_links(text))

    assert seconds < 5
    assert all(link.end <= len(text) for link in links)


def test_without_links_leaves_the_words() -> None:
    assert without_links("one https://a.com/1 two b.org/2") == "one   two  "


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.com/x?y=1#z", "https://a.com/x?y=1#z"),
        ("https://bücher.de/ä b?q=日", "https://xn--bcher-kva.de/%C3%A4%20b?q=%E6%97%A5"),
        ("https://a.com/Foo_Inc.", "https://a.com/Foo_Inc%2E"),
        ("https://a.com:8080/x", "https://a.com:8080/x"),
        (" https://A.com/%20 ", "https://a.com/%20"),
        ("javascript:alert(1)", ""),
        ("//a.com/x", ""),
        ("https://user@a.com/", ""),
        ("https://a.com:99999/", ""),
        ("http://[::1]/x", "http://[::1]/x"),
        ("http://[2001:DB8::1]:8080/a b", "http://[2001:db8::1]:8080/a%20b"),
        ("http://[not-an-address]/x", ""),
        ("https://[::1", ""),
        ("https://a b.com/", ""),
        ("", ""),
    ],
)
def test_ascii_url_keeps_http_addresses_only(url: str, expected: str) -> None:
    assert ascii_url(url) == expected


@given(st.text())
def test_ascii_url_is_linked_whole(path: str) -> None:
    url = ascii_url(f"https://example.com/{path}")

    assert [link.url for link in find_links(f"Words\n{url}")] == [url]


def test_same_address_is_seen_through_its_spelling() -> None:
    assert is_same_address("https://a.com/Foo_Inc%2E", "https://a.com/Foo_Inc.")
    assert not is_same_address("https://a.com/x", "https://a.com/y")
    assert not is_same_address("", "")
