"""Canonical addresses, content hashes and plain text: what they fold, and that hostile input costs little."""

from __future__ import annotations

import unicodedata
from time import monotonic

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.text.html_text import html_to_text
from pipeline.text.links import canonical_url
from pipeline.text.plain_text import bare_title, content_hash, markdown_to_text, plain_text, title_in

ANY_TEXT = st.text(st.characters(exclude_categories=[]))
PIECES = (
    "<p> </p> <div hidden> </div> <b> </b> <li> <br> <script> </script> <!-- --> <pre> </pre> < > & &amp; &#0; "
    "&#xD800; <a href=' \" = / <![CDATA[ ]]> <? </ text <td> <style> \u200d"
)
MARKUP = st.lists(st.sampled_from([*PIECES.split(), " ", "\n", "\ud800"])).map("".join)
URLS = st.builds(
    "{}{}{}{}{}{}".format,
    st.sampled_from(["http://", "HTTPS://", "ftp://", "//", "", " http://"]),
    st.sampled_from(["", "user:pass@", "@", "a@b@"]),
    st.sampled_from(
        ["a.example", "BÜCHER.example", "[::1]", "[", "a b", "。", ".", "a..", "xn--", "İ.example", "a℀b"]
    ),
    st.sampled_from(["", ":", ":80", ":0443", ":443", ":99999", ":x"]),
    ANY_TEXT,
    st.sampled_from(["", "?", "?&", "?utm_source=1", "?utm_a=1&", "?%75tm_a=1&b", "#", "? #x", "\u00a0"]),
)


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("HTTP://Example.COM", "http://example.com/"),
        ("https://example.com:443/a/", "https://example.com/a/"),
        ("https://example.com:8443/a", "https://example.com:8443/a"),
        ("http://example.com:443/", "http://example.com:443/"),
        ("https://example.com./a#top", "https://example.com/a"),
        ("https://example.com/#/news/1", "https://example.com/#/news/1"),
        ("https://example.com/a?b=1#!news ü", "https://example.com/a?b=1#!news%20%C3%BC"),
        ("https://example.com/a#:~:text=x", "https://example.com/a"),
        ("https://bücher.example/ü x", "https://xn--bcher-kva.example/%C3%BC%20x"),
        ("https://user:pass@example.com/", "https://example.com/"),
        ("https://example.com/?b=2&utm_source=x&a=1&UTM_Medium=y", "https://example.com/?b=2&a=1"),
        (
            "https://example.com/?fbclid=1&gclid=2&mc_cid=3&mc_eid=4&igshid=5&ref_src=6",
            "https://example.com/",
        ),
        (
            "https://example.com/?ref=home&utmost=1&a=%20&a=",
            "https://example.com/?ref=home&utmost=1&a=%20&a=",
        ),
        ("https://example.com/Case?Q=A", "https://example.com/Case?Q=A"),
        ("http://[2001:DB8::1]:80/", "http://[2001:db8::1]/"),
        ("  https://example.com/a\n", "https://example.com/a"),
        ("mailto:Someone@Example.com", "mailto:Someone@Example.com"),
        ("http://[broken/", "http://[broken/"),
        ("https:///path", "https:///path"),
        ("", ""),
    ],
)
def test_canonical_url(url, canonical):
    assert canonical_url(url) == canonical


@settings(max_examples=500, deadline=None)
@given(ANY_TEXT | URLS)
@example("http://h/a #x")
@example("http://h/a? #x")
@example("http://h?utm_a&")
def test_canonical_url_is_idempotent_and_never_raises(url):
    once = canonical_url(url)
    assert canonical_url(once) == once


def test_content_hash_folds_white_space_and_composition():
    assert content_hash("Café", "a b") == content_hash("  Cafe\u0301 ", "a\n\n\tb ")
    assert content_hash("", "") == "01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b"


def test_content_hash_tells_title_from_body():
    assert (
        len(
            {
                content_hash("a b", "c"),
                content_hash("a", "b c"),
                content_hash("a\nb", "c"),
                content_hash("A", "c"),
            }
        )
        == 3
    )


@settings(deadline=None)
@given(ANY_TEXT, ANY_TEXT)
def test_content_hash_never_raises_and_ignores_the_form(title, body):
    found = content_hash(title, body)
    assert len(found) == 64
    assert content_hash(unicodedata.normalize("NFD", title), unicodedata.normalize("NFD", body)) == found


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("", ""),
        ("plain", "plain"),
        (
            "<h1>Title</h1><p>One\n two <b>three</b></p><p>Four<br>five</p>",
            "Title\n\nOne two three\n\nFour\nfive",
        ),
        ("<ul><li>a<li>b</li></ul>c", "a\nb\n\nc"),
        ("<table><tr><td>1<td>2<tr><td>3</table>", "1 2\n3"),
        ("<pre>a\n  b</pre>", "a\nb"),
        ("in<b>line</b>d", "inlined"),
        ("&lt;b&gt; &amp;amp; caf&eacute; &#233; &nbsp;x", "<b> &amp; café é x"),
        ("&#" + "9" * 5000 + ";", "\ufffd"),
        ("&#0;&#xD800;", "\ufffd\ufffd"),
        ("a<!-- no -->b<!-->c<!--->d<!x>e<?y?>f</ >g", "abcdefg"),
        ("a<!-- never closed", "a"),
        ("a<script>if (1 < 2) '</p>'</script>b<STYLE>p{}</Style >c", "abc"),
        ("a<script>never closed", "a"),
        ("<head><title>no</title></head><noscript>no</noscript><template>no</template>yes", "yes"),
        ("<p hidden>no<p>yes", "yes"),
        ("<div><p hidden>no</div>yes", "yes"),
        ("<div hidden>no<div>no</div>no</div>yes", "yes"),
        ("<span><div hidden></span>no</div>yes", "yes"),
        ("<p style='color:red; DISPLAY : none'>no</p><p style='font-size:0px'>no</p>yes", "yes"),
        ("<p style='opacity:0.05'>yes</p>", "yes"),
        ("<i aria-hidden='true'>no</i><i aria-hidden=false>yes</i>", "yes"),
        ("<img hidden>yes<br hidden>yes", "yes\nyes"),
        ("1 < 2 and 3 > 2 <3", "1 < 2 and 3 > 2 <3"),
        ("a<b title='>'>c</b>", "ac"),
        ("a<b title='never closed>c", "a"),
        ("a\u200bb\u202ec\u00add\U000e0041e\x00f\ufeff", "abcdef"),
        ("a\u200db", "ab"),
        ("👩\u200d🚀 می\u200cخواهم", "👩\u200d🚀 می\u200cخواهم"),
        ("a\ud800b", "a\ufffdb"),
    ],
)
def test_html_to_text(html, text):
    assert html_to_text(html) == text


@settings(max_examples=500, deadline=None)
@given(ANY_TEXT | MARKUP)
def test_html_to_text_never_raises_and_gives_what_a_database_takes(html):
    found = html_to_text(html)
    assert "\x00" not in found
    found.encode("utf-8")


@settings(deadline=None)
@given(ANY_TEXT | MARKUP)
def test_markdown_to_text_never_raises(md):
    markdown_to_text(md).encode("utf-8")


def test_markdown_to_text():
    md = "# Title\n\nSome *text* with [a link](https://a.example) & <b>markup</b>.\n\n- one\n- two\n\n```\ncode\n```\n"
    assert markdown_to_text(md) == "Title\n\nSome text with a link & <b>markup</b>.\n\none\n\ntwo\n\ncode"


def test_markdown_that_is_too_long_stays_as_written():
    assert markdown_to_text("*a* " * 100_000) == ("*a* " * 100_000).strip()


@pytest.mark.parametrize(
    ("body", "body_format", "text"),
    [
        ("<p>a</p>", "html", "a"),
        ("*a*", "markdown", "a"),
        ("<p>*a*  b\r\n\r\n\r\nc\u200b", "text", "<p>*a* b\n\nc"),
    ],
)
def test_plain_text_reads_each_format(body, body_format, text):
    assert plain_text(body, body_format) == text


@pytest.mark.parametrize("length", [20_000, pytest.param(200_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "unit",
    [
        "<!--", "<a ", "<", "</", "<!", "<?", "<a b='", "<a b=", '<a b=" ', "<script>", "<script></script ", "&", "&#",
        " <a\n", "<p>", "</b><i>", "<div></b>", "<b><div>" + "<i></b>" * 50, "<p hidden>", "<pre> ", "&" + "a" * 40,
        "\u200d", "\u0300\u0316", "<p style='display:", "[", "![", "`", "*a ", "> ",
    ],
)  # fmt: skip
def test_hostile_input_costs_time_in_proportion(unit, length):
    text = unit * (length // len(unit))
    started = monotonic()
    html_to_text(text)
    markdown_to_text(text[: length // 10])
    content_hash(text, text)
    canonical_url(f"http://{text}/")
    canonical_url(f"http://a.example/{text}?{text}")
    # Linear code takes under a second; any quadratic step takes a minute.
    assert monotonic() - started < 40


@pytest.mark.parametrize(
    ("body", "body_format", "title"),
    [
        ("# The *ferry* [sails](https://harbour.example/)\n\nText.", "markdown", "The ferry sails"),
        ("\n\n# Later\nText.", "markdown", "Later"),
        ("Text.\n\n# A part of it\n", "markdown", ""),
        ("#ferry leaves\n", "markdown", ""),
        ("# A line of a text", "text", ""),
        (
            "<title>News &amp; more | Site</title><h1 class=a>Har<b>bour</b>\n news</h1>",
            "html",
            "Harbour news",
        ),
        ("<title>News &amp; more</title><p>Text.</p>", "html", "News & more"),
        ("<h1>Never closed <p>Text.</p>", "html", ""),
        ("<h1>" * 9_000, "html", ""),
    ],
)
def test_a_body_says_what_it_is_called(body, body_format, title):
    assert title_in(body, body_format) == title


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("Fwd: Re: The ferry", "The ferry"),
        ("FW: AW[2]: Der Winterfahrplan", "Der Winterfahrplan"),
        ("转发：冬季时刻表", "冬季时刻表"),
        ("re:publica 2027 opens", "re:publica 2027 opens"),
        ("Reuters: ferry delayed", "Reuters: ferry delayed"),
        ("Re: ", "Re: "),
        (
            "Fwd: RE: [Allotments] November newsletter - please read!!",
            "November newsletter - please read!!",
        ),
        ("[Allotments] AW: Re: [Ext] November", "November"),
        ("[Video] The ferry", "[Video] The ferry"),
        ("Re: [Allotments]", "[Allotments]"),
        ("FOR IMMEDIATE RELEASE: Mill reopens", "Mill reopens"),
        ("Press Release | For immediate release: Mill reopens", "Mill reopens"),
        ("Pressemitteilung – Die Mühle öffnet", "Die Mühle öffnet"),
        ("Press release-party at the mill", "Press release-party at the mill"),
        (
            "Caf&eacute; Lumi&egrave;re reopens &amp; gets a terrace",
            "Café Lumière reopens & gets a terrace",
        ),
        ("Q&A at AT&T; what&#39;s new&#10;now", "Q&A at AT&T; what's new now"),
        ("&lt;b&gt;", "<b>"),
    ],
)
def test_titles_without_what_is_put_before_them_and_with_letters_for_entities(title, said):
    assert bare_title(title) == said
