"""Mails: plain text and HTML of the same words."""

from __future__ import annotations

import re
from pathlib import Path

import lxml.html
import pytest
from django.core import mail
from django.core.mail import EmailMessage

from accounts import mail_sending
from config.admin_site import mail_previews as admin_mails


def test_a_framed_mail_says_the_same_in_both_forms(settings):
    settings.PUBLIC_URL = "https://pipeline.example"
    text = "Hello <b>Bob</b>,\n\nopen this:\n\nhttps://pipeline.example/x?a=1&b=2\n\nABC-123\n\nBye\nAlice"
    message = mail_sending.add_html(
        EmailMessage("Subject & more", text, "a@example.test", ["b@example.test"])
    )
    assert message.body == text + "\n"
    [(html, kind)] = message.alternatives
    assert kind == "text/html"
    assert "Hello &lt;b&gt;Bob&lt;/b&gt;," in html
    assert 'href="https://pipeline.example/x?a=1&amp;b=2"' in html
    assert ">ABC-123</p>" in html
    assert "Bye<br>Alice" in html
    assert "Subject &amp; more" in html


HOSTILE = (
    "<b>Bold</b> <script>alert(1)</script> <img src=x onerror=alert(1)> [x](javascript:alert(1)) "
    "https://evil.example/login javascript:alert(1) \u202egnp.exe \"'>"
)


def test_what_strangers_write_is_words_in_every_mail(db, settings):
    """Names, titles, messages and errors: no tag, no link, no button, no header, no turned line."""
    settings.PUBLIC_URL = "https://pipeline.example"
    own = {"address": "https://pipeline.example/w/x/", "choices_address": "https://pipeline.example/c"}
    bad = f"{HOSTILE}\r\nBcc: eve@evil.example\r\n\r\nhttps://evil.example/button\r\n\r\n"
    for name in sorted(path.stem for path in Path("templates/mail").glob("*.txt")):
        given = dict.fromkeys(("workspace", "by", "title", "text", "message", "reason"), bad)
        message = mail_sending.render(
            name, "bob@example.test", {**admin_mails.OUR_MAILS["workspace_deletion"][1], **own, **given}
        )
        [(html, _)] = message.alternatives
        parsed = lxml.html.fromstring(html)
        assert {one.tag for one in parsed.iter()} <= TAGS, name
        assert [
            one for one in parsed.xpath("//@href") if not one.startswith("https://pipeline.example/")
        ] == [], name
        assert not re.search("[\u202a-\u202e]", message.subject + message.body + html), name
        head = message.message()
        assert ["Bcc" in head, len(head.get_all("Subject")), head["To"]] == [False, 1, "bob@example.test"], (
            name
        )
        assert [key for key, value in head.items() if "evil" in value] == ["Subject"], name


TAGS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "table",
        "tbody",
        "tr",
        "td",
        "h1",
        "h2",
        "p",
        "a",
        "br",
    ),
}


@pytest.mark.parametrize(
    "near", ["https://pipeline.example.evil.test/x", "https://pipeline.example@evil.test/x"]
)
def test_an_address_that_only_begins_like_ours_is_no_button(settings, near):
    settings.PUBLIC_URL = "https://pipeline.example"
    message = mail_sending.add_html(
        EmailMessage("x", f"Look:\n\n{near}\n\nor {near}", "a@example.test", ["b@example.test"])
    )
    assert "href" not in message.alternatives[0][0]


def test_allauth_s_mails_are_framed(client, db):
    client.post("/account/signup/", {"email": "new@example.test", "password1": "a long enough phrase 9"})
    [message] = mail.outbox
    assert message.subject.startswith("Content pipeline: ")
    assert [kind for _, kind in message.alternatives] == ["text/html"]
    assert "example.com" not in message.body
