"""Bodies as HTML that is safe to serve."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.platforms.email_newsletter.frame import NewsletterStyle, inline_styles
from pipeline.text.body_html import BODY_FORMATS, to_html

REL = 'rel="noopener noreferrer"'


@pytest.mark.parametrize(
    ("body", "html"),
    [
        ("", ""),
        ("One\ntwo\n\n\nthree", "<p>One<br>two</p>\n<p>three</p>"),
        ("One\r\n \r\ntwo", "<p>One</p>\n<p>two</p>"),
        ("a < b & <script>x</script>", "<p>a &lt; b &amp; &lt;script&gt;x&lt;/script&gt;</p>"),
        (
            "See https://a.com/x?y=1&z=2.",
            f'<p>See <a href="https://a.com/x?y=1&amp;z=2" {REL}>https://a.com/x?y=1&amp;z=2</a>.</p>',
        ),
        ("a.com and *stars*", "<p>a.com and *stars*</p>"),
    ],
)
def test_text_becomes_paragraphs(body: str, html: str) -> None:
    assert to_html(body, "text") == html


@pytest.mark.parametrize(
    ("body", "html"),
    [
        (
            "# T\n\n**b** [c](https://x.org)",
            f'<h1>T</h1>\n<p><strong>b</strong> <a href="https://x.org" {REL}>c</a></p>\n',
        ),
        ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n"),
        ("[a](javascript:alert(1))", "<p>[a](javascript:alert(1))</p>\n"),
        ("~~a~~", "<p><s>a</s></p>\n"),
    ],
)
def test_markdown_is_rendered_without_its_html(body: str, html: str) -> None:
    assert to_html(body, "markdown") == html


@pytest.mark.parametrize(
    ("body", "html"),
    [
        ("<p onclick=x>a</p><script>b</script>", "<p>a</p>"),
        ("<a href='javascript:x'>a</a>", '<a rel="noopener noreferrer">a</a>'),
        ("<img src='data:x' onerror=y alt=z>", '<img alt="z">'),
        ("<b>open", "<b>open</b>"),
        ("<iframe src=//a.com></iframe>b", "b"),
    ],
)
def test_html_is_sanitised(body: str, html: str) -> None:
    assert to_html(body, "html") == html


@given(
    st.text(
        alphabet=st.one_of(st.characters(exclude_categories=()), st.sampled_from("<>&\"'=/:scriptonjava"))
    ),
    st.sampled_from(BODY_FORMATS),
)
def test_no_body_brings_script(body: str, body_format: str) -> None:
    html = to_html(body, body_format)

    assert (
        re.search(
            r"<(?:script|iframe|style|object)|<[^>]*\son\w+\s*=|href=\"(?!https?:|mailto:|[^\":]*\")",
            html,
            re.IGNORECASE,
        )
        is None
    )


def test_unknown_format_is_our_mistake() -> None:
    with pytest.raises(ValueError, match="'rtf'; it is one of text, markdown, html"):
        to_html("x", "rtf")


ENDLESS = {
    **{
        tag: lambda times, tag=tag: f"{f'<{tag}>' * times}two{f'</{tag}>' * times}"
        for tag in ("div", "b", "blockquote", "ul")
    },
    "li": lambda times: "<li><dd>" * times + "two",
    # 190 KB of it opened 72 million elements.
    "formatting left open": lambda times: "".join(f"<p><b id={n}></p>" for n in range(times // 2)) + "two",
    "formatting closed elsewhere": lambda times: (
        "<b>" * 200 + "".join(f"<p></b><b id={n}></p>" for n in range(times // 2)) + "two"
    ),
}


@pytest.mark.parametrize("times", [2_000, pytest.param(22_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ENDLESS)
def test_of_markup_without_end_the_words_stay(kind: str, times: int) -> None:
    body = ENDLESS[kind](times)
    html = to_html(f"<p>one</p>{body}<p>three</p>", "html")
    # 16,000 elements in each other took the process along.
    mail = inline_styles(html, NewsletterStyle("#17594a"))
    assert re.findall(r"one|two|three", mail) == ["one", "two", "three"]
    assert len(mail) < 10 * len(body)


def test_an_untidy_body_keeps_its_markup() -> None:
    body = "<p><b>one</p>" * 100 + "<ul><li>two<li><i>three</ul>" * 100
    assert "<li>" in to_html(body, "html")
