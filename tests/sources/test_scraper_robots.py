"""robots.txt by RFC 9309: whose rules hold, what they match, and what an answer that is none means."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta

import pytest

from config.core.http_client import AddressRefused, ConnectFailed, NameNotFound, TimedOut
from pipeline.sources.web_pages.robots import MAX_REDIRECTS, ROBOTS_BYTES, Robots, product_token, select_rules

from .fake_site import FakeSite, reply

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ROBOTS = "https://site.example/robots.txt"


def robots_of(text, *, kept=None, now=NOW, **headers):
    answer = text if isinstance(text, Exception) else reply(text, kind="text/plain", **headers)
    return Robots(FakeSite({ROBOTS: answer}), kept or {}, now=now)


def allows(text, path):
    return robots_of(text).allows(f"https://site.example{path}")


# The example of RFC 9309, 5.1, with our product in the place of its.
SIMPLE = """
User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: content-pipeline
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""


@pytest.mark.parametrize(
    ("path", "is_allowed"),
    [("/example/page.html", False), ("/example/other.html", True), ("/x.gif", True), ("/", True)],
)
def test_group_of_our_product_holds_and_that_of_everybody_not(path, is_allowed):
    assert allows(SIMPLE, path) is is_allowed


# RFC 9309, 5.2, and 2.2.2: the longest match holds, and of two that are equal the allowing one.
LONGEST = """
User-Agent: *
Allow: /example/page/
Disallow: /example/page/disallowed.gif
Disallow: /same
Allow: /same
"""


@pytest.mark.parametrize(
    ("path", "is_allowed"),
    [
        ("/example/page/", True),
        ("/example/page/disallowed.gif", False),
        ("/example/page/disallowed.gif?x=1", False),
        ("/same", True),
    ],
)
def test_longest_match_holds(path, is_allowed):
    assert allows(LONGEST, path) is is_allowed


@pytest.mark.parametrize(
    ("rule", "path", "is_allowed"),
    [
        ("/a", "/a", False),
        ("/a", "/abc", False),
        ("/a", "/A", True),
        ("/*.gif$", "/x/y.gif", False),
        ("/*.gif$", "/x/y.gif?z", True),
        ("/a*c", "/abbbc/d", False),
        ("/a$", "/a", False),
        ("/a$", "/ab", True),
        ("", "/a", True),
        ("/ツ", "/%E3%83%84", False),
        ("/%E3%83%84", "/%E3%83%84", False),
        ("/a%3Cd%3Ee", "/a%3Cd%3Ee", False),
        ("/", "/robots.txt", True),
    ],
)
def test_rule_matches_as_the_standard_says(rule, path, is_allowed):
    assert allows(f"User-agent: *\nDisallow: {rule}", path) is is_allowed


@pytest.mark.parametrize(
    "text",
    [
        "User-agent: CONTENT-Pipeline\nDisallow: /",
        "user-agent: content-pipeline/2.0\ndisallow: /",
        "User-agent: content-pipeline # that's us\nDisallow: / # all",
        "User-agent: *\nAllow: /\n\nUser-agent: content-pipeline\nDisallow: /",
        "User-agent: other\nUser-agent: content-pipeline\nDisallow: /",
        "User-agent: content-pipeline\nAllow: /a\n\nUser-agent: *\nAllow: /\n\nUser-agent: content-pipeline\nDisallow: /",
        "User-agent: content-pipeline\nSitemap: /map.xml\nUnknown: x\nDisallow: /",
        "\ufeffUser-agent: content-pipeline\r\nDisallow: /\r\n",
        "User-agent: content-pipeline\rDisallow: /\r",
        "<html>\nUser-agent: content-pipeline\n???\nDisallow: /",
    ],
)
def test_group_is_found_in_every_spelling(text):
    assert allows(text, "/b") is False


@pytest.mark.parametrize(
    "text",
    [
        "User-agent: content\nDisallow: /",
        "User-agent: content-pipeline-two\nDisallow: /",
        "User-agent: pipeline\nDisallow: /",
        "Disallow: /",
        "User-agent: content-pipeline\n\nUser-agent: *\nAllow: /",
        "User-agent: *\nDisallow: /\n\nUser-agent: content-pipeline\nDisallow:",
        "",
    ],
)
def test_groups_of_others_do_not_hold(text):
    assert allows(text, "/b") is True


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418])
def test_answer_of_the_400s_sets_no_limits(status):
    robots = robots_of("User-agent: *\nDisallow: /", status=status)
    assert robots.allows("https://site.example/a") is True
    assert robots.note_on("https://site.example/a").code == "robots_none"


@pytest.mark.parametrize("answer", [500, 503, 429, TimedOut("slow"), ConnectFailed("refused")])
def test_server_without_an_answer_closes_everything(answer):
    robots = robots_of(answer) if isinstance(answer, Exception) else robots_of("", status=answer)
    assert (robots.allows("https://site.example/a"), robots.is_closed("https://site.example/a")) == (
        False,
        True,
    )
    assert robots.note_on("https://site.example/a").code == "robots_unreachable"


def test_address_that_may_not_be_called_is_no_answer_of_a_server():
    with pytest.raises(AddressRefused):
        robots_of(AddressRefused("no")).allows("https://site.example/a")


def test_name_that_nobody_has_is_no_answer_of_a_server():
    with pytest.raises(NameNotFound):
        robots_of(NameNotFound("site.example")).allows("https://site.example/a")


def test_copy_holds_for_a_day_then_for_thirty_while_the_server_fails():
    first = robots_of("User-agent: *\nDisallow: /no\nCrawl-delay: 2")
    first.allows("https://site.example/")
    kept = json.loads(json.dumps(first.as_state()))

    def later(**age):
        robots = robots_of("", status=500, kept=kept, now=NOW + timedelta(**age))
        url = "https://site.example/no"
        return (
            robots.allows(url),
            robots.allows("https://site.example/yes"),
            robots.delay_of(url),
            robots._http.asked,
        )

    assert later(hours=23) == (False, True, 2.0, [])
    assert later(days=29) == (False, True, 2.0, [ROBOTS])
    assert later(days=31) == (False, False, 0.0, [ROBOTS])


def test_closed_origin_is_asked_again_after_an_hour():
    first = robots_of("", status=500)
    first.allows("https://site.example/")
    kept = first.as_state()
    assert robots_of("", kept=kept, now=NOW + timedelta(minutes=59)).allows("https://site.example/") is False
    assert robots_of("", kept=kept, now=NOW + timedelta(minutes=61)).allows("https://site.example/") is True


def test_each_scheme_host_and_port_has_its_own():
    site = FakeSite({})
    robots = Robots(site, {}, now=NOW)
    for url in (
        "https://a.example/x",
        "https://A.example/y",
        "http://a.example/x",
        "https://a.example:8443/x",
    ):
        assert robots.allows(url) is True
    assert site.asked == [
        "https://a.example/robots.txt",
        "http://a.example/robots.txt",
        "https://a.example:8443/robots.txt",
    ]


def test_it_is_asked_for_within_the_bounds_of_the_standard():
    site = FakeSite({})
    Robots(site, {}, now=NOW).allows("https://site.example/a")
    asked = site.options[ROBOTS]
    assert (asked["max_redirects"] >= 5, asked["max_bytes"] >= 500 * 1024, asked["truncate"]) == (
        True,
        True,
        True,
    )
    assert (MAX_REDIRECTS, ROBOTS_BYTES) == (5, 512_000)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("5", 5.0),
        ("0.5", 0.5),
        ("600", 60.0),
        ("-3", 0.0),
        ("soon", 0.0),
        ("nan", 0.0),
        ("inf", 0.0),
        ("", 0.0),
    ],
)
def test_crawl_delay_is_bounded(written, seconds):
    robots = robots_of(f"User-agent: *\nCrawl-delay: {written}")
    assert robots.delay_of("https://site.example/") == seconds


def test_sitemaps_are_found_wherever_they_stand():
    text = "Sitemap: https://site.example/a.xml\nUser-agent: x\nSitemap: /b.xml\nDisallow: /\nsitemap: /b.xml"
    assert robots_of(text).sitemaps_of("https://site.example/") == (
        "https://site.example/a.xml",
        "https://site.example/b.xml",
    )


def test_huge_file_is_kept_small():
    rules = "".join(f"User-agent: bot{number}\nDisallow: /{number}\n\n" for number in range(10_000))
    robots = robots_of(f"{rules}User-agent: *\nDisallow: /no")
    assert robots.allows("https://site.example/no") is False
    assert len(json.dumps(robots.as_state())) < 300


def test_file_that_cannot_be_packed_is_not_kept():
    rules = "".join(
        f"Disallow: /{hashlib.sha256(bytes([number % 256, number // 256])).hexdigest()}\n"
        for number in range(5000)
    )
    robots = robots_of(f"User-agent: *\n{rules}Disallow: /no")
    assert robots.allows("https://site.example/no") is False
    assert robots.as_state() == {}


@pytest.mark.parametrize("kept", [{"text": "!"}, {"text": "eJw="}, {}, {"text": 3, "kind": None}])
def test_copy_that_cannot_be_read_is_asked_anew(kept):
    robots = robots_of("User-agent: *\nDisallow: /no", kept={"https://site.example": kept})
    assert robots.allows("https://site.example/no") is False


@pytest.mark.parametrize(
    ("user_agent", "token"),
    [
        ("content-pipeline/0.9.0 (+https://x)", "content-pipeline"),
        ("Foo_Bot", "foo_bot"),
        ("7", "content-pipeline"),
    ],
)
def test_product_token(user_agent, token):
    assert product_token(user_agent) == token


def test_select_keeps_what_holds_for_us_only():
    text, sitemaps = select_rules(
        "User-agent: a\nDisallow: /\nUser-agent: us\nallow: /x\ndisallow: /", "us", base="https://x/"
    )
    assert (text, sitemaps) == ("User-agent: *\nAllow: /x\nDisallow: /", ())


def test_a_sitemap_without_an_address_is_passed_over():
    text = "Sitemap: http://[foo\nSitemap: /right.xml\nUser-agent: *\nDisallow: /a"
    rules, sitemaps = select_rules(text, "content-pipeline", base=ROBOTS)
    assert sitemaps == ("https://site.example/right.xml",)
    assert "Disallow: /a" in rules


@pytest.mark.parametrize("line", [" " * 4000 + "x", "allow:" + " " * 4000 + "x", "a" + " " * 4090])
def test_blanks_cost_nothing(line):
    """Trying every way to share them out between name and value takes hours for so many lines."""
    rules, _ = select_rules(
        f"User-agent: *\nDisallow: /a # why\n{f'{line}{chr(10)}' * 2000}", "x", base=ROBOTS
    )
    assert rules.startswith("User-agent: *\nDisallow: /a")
