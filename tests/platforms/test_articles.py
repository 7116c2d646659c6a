"""What articles are taken apart into, and what is added to them."""

from __future__ import annotations

import pytest

from pipeline.platforms.article_html import ArticleElement, article_elements, as_html, unique_tags
from pipeline.platforms.payload_types import Payload, PayloadAsset
from pipeline.platforms.wordpress.drafts import SiteImage, convert_to_blocks
from tests.platforms.servers.base import picture

KEY = "pub_01m80wxp87eh3rnr6xcszcrb9t"


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("", []),
        ("  \n ", []),
        ("<p>One</p>\n<p>Two</p>", [ArticleElement("p", "<p>One</p>"), ArticleElement("p", "<p>Two</p>")]),
        ("Words <b>of</b> nobody", [ArticleElement("p", "<p>Words <b>of</b> nobody</p>")]),
        (
            "a<hr>b",
            [ArticleElement("p", "<p>a</p>"), ArticleElement("hr", "<hr>"), ArticleElement("p", "<p>b</p>")],
        ),
        ("<p>a<br>b &amp; &#233;</p>", [ArticleElement("p", "<p>a<br>b &amp; &#233;</p>")]),
        (
            "<ul><li>a<ul><li>b</li></ul></li></ul><h2>c</h2>",
            [
                ArticleElement("ul", "<ul><li>a<ul><li>b</li></ul></li></ul>"),
                ArticleElement("h2", "<h2>c</h2>"),
            ],
        ),
        ('<p dir="rtl">a</p>', [ArticleElement("p", '<p dir="rtl">a</p>', is_bare=False)]),
        (
            "<blockquote><p>a</p></blockquote>",
            [ArticleElement("blockquote", "<blockquote><p>a</p></blockquote>")],
        ),
        ('<img src="x"/>', [ArticleElement("p", '<p><img src="x"/></p>')]),
    ],
)
def test_pieces(html, found):
    assert article_elements(html) == found


def test_blocks_are_what_the_editor_writes():
    shown = SiteImage(
        7, "https://blog.example.com/a.png", "https://media.example.com/a.png", "A “red” <square>"
    )
    body = '<h2>Next</h2>\n<h3>Then</h3>\n<p><img src="https://media.example.com/a.png"></p>\n<ul><li>x</li></ul>'

    assert convert_to_blocks(body, [shown], key=KEY) == (
        "<!-- wp:heading -->\n<h2>Next</h2>\n<!-- /wp:heading -->\n\n"
        '<!-- wp:heading {"level":3} -->\n<h3>Then</h3>\n<!-- /wp:heading -->\n\n'
        '<!-- wp:paragraph -->\n<p><img src="https://blog.example.com/a.png"></p>\n<!-- /wp:paragraph -->\n\n'
        f'<!-- wp:html {{"metadata":{{"name":"{KEY}"}}}} -->\n<ul><li>x</li></ul>\n<!-- /wp:html -->'
    )
    assert convert_to_blocks("<p>a</p>", [shown], key=KEY) == (
        "<!-- wp:paragraph -->\n<p>a</p>\n<!-- /wp:paragraph -->\n\n"
        '<!-- wp:image {"id":7,"sizeSlug":"full","linkDestination":"none",'
        f'"metadata":{{"name":"{KEY}"}}}} -->\n'
        '<figure class="wp-block-image size-full"><img src="https://blog.example.com/a.png" '
        'alt="A “red” &lt;square&gt;" class="wp-image-7"/></figure>\n<!-- /wp:image -->'
    )


def payload(**changes):
    given = {
        "item": "gen_1",
        "revision": 1,
        "bucket": "blog",
        "title": " T\ud83d ",
        "body": "Words.",
        "body_format": "text",
    }
    return Payload(**{**given, **changes})


def test_what_is_added_is_a_step():
    config = {"link": "end", "ai_line": "Written with <AI>"}
    post = as_html(payload(link="https://example.com/?a=1&b=2", is_ai_generated=True), config)

    assert post.parts[0].splitlines() == [
        "<p>Words.</p>",
        '<p><a href="https://example.com/?a=1&amp;b=2">https://example.com/?a=1&amp;b=2</a></p>',
        "<p><em>Written with &lt;AI&gt;</em></p>",
    ]
    assert [step.code for step in post.steps] == ["link_added", "disclosure_added"]
    assert (post.payload.title, post.payload.body_format) == ("T?", "html")


@pytest.mark.parametrize(
    ("given", "config"),
    [
        ({"link": "https://example.com/"}, {"link": "none"}),
        ({"link": "https://example.com/", "body": "See https://example.com/"}, {"link": "end"}),
        ({}, {"link": "end", "ai_line": "Written with AI"}),
        ({"is_ai_generated": True}, {}),
    ],
)
def test_nothing_is_added_without_cause(given, config):
    assert as_html(payload(**given), config).steps == ()


def test_files_that_are_no_images_are_left_out():
    video = PayloadAsset(url="https://media.example.com/clip.mp4", mime_type="video/mp4")
    image = picture()
    post = as_html(payload(assets=(video, image)), {})

    assert post.payload.assets == (image,)
    assert [step.code for step in post.steps] == ["files_left_out"]


def test_markup_is_safe():
    post = as_html(payload(body="<p onclick='x'>a<script>b</script></p>", body_format="html"), {})

    assert post.parts == ("<p>a</p>",)


def test_names_are_each_there_once():
    assert unique_tags(["Trams", "trams", " R & D ", "", "🚋", "Straße", "STRASSE"]) == [
        "Trams",
        "R & D",
        "🚋",
        "Straße",
    ]
    assert unique_tags("Trams") == unique_tags(None) == []
