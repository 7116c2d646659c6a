"""The page that asks for a code that was mailed: for how long it works, where its mail is, and what too often leads to."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.django_db
PERSON = {"email": "ann@example.test", "name": "Ann", "password1": "a long enough phrase 9"}


def words_of_sign_up(client):
    return client.post("/account/signup/", PERSON, follow=True).content.decode()


def test_it_says_how_long_the_code_works(client, settings):
    settings.EMAIL_FILE_PATH = None
    shown = words_of_sign_up(client)
    assert "ann@example.test" in shown
    assert "It expires in 15 minutes." in shown
    assert "is a file in" not in shown


def test_it_says_where_mails_are_that_are_not_sent(client, settings):
    settings.EMAIL_FILE_PATH = "/srv/mails"
    assert "Open the newest file in <code>/srv/mails</code>." in words_of_sign_up(client)


def test_a_code_that_is_asked_for_too_often_is_refused_in_words(client):
    words_of_sign_up(client)
    answer = client.post("/account/confirm-email/", {"action": "resend"})
    assert (answer.status_code, answer.headers["content-type"]) == (429, "text/html; charset=utf-8")
    assert "Wait a minute and try again." in answer.content.decode()
