"""Mails: plain text and HTML of the same words."""

from __future__ import annotations

from django.core import mail
from django.core.mail import EmailMessage

from accounts import mails


def test_a_framed_mail_says_the_same_in_both_forms():
    text = "Hello <b>Bob</b>,\n\nopen this:\n\nhttps://pipeline.example/x?a=1&b=2\n\nABC-123\n\nBye\nAlice"
    message = mails.framed(EmailMessage("Subject & more", text, "a@example.test", ["b@example.test"]))
    assert message.body == text + "\n"
    [(html, kind)] = message.alternatives
    assert kind == "text/html"
    assert "Hello &lt;b&gt;Bob&lt;/b&gt;," in html
    assert 'href="https://pipeline.example/x?a=1&amp;b=2"' in html
    assert ">ABC-123</p>" in html
    assert "Bye<br>Alice" in html
    assert "Subject &amp; more" in html


def test_allauth_s_mails_are_framed(client, db):
    client.post("/account/signup/", {"email": "new@example.test", "password1": "a long enough phrase 9"})
    [message] = mail.outbox
    assert message.subject.startswith("Content pipeline: ")
    assert [kind for _, kind in message.alternatives] == ["text/html"]
    assert "example.com" not in message.body
