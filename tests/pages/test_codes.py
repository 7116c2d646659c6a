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
    assert "sends no mail" not in shown


@pytest.mark.parametrize(
    ("backend", "folder", "place"),
    [
        ("filebased", "{tmp}", "in the newest file in <code>{tmp}</code>."),
        ("console", None, "in its log."),
    ],
)
def test_without_mail_it_says_where_the_code_is_and_sends_none(
    client, settings, tmp_path, backend, folder, place
):
    settings.EMAIL_BACKEND = f"django.core.mail.backends.{backend}.EmailBackend"
    settings.EMAIL_FILE_PATH = folder and str(tmp_path)
    login = client.get("/account/login/").content.decode()
    request = client.get("/account/login/code/").content.decode()
    shown = words_of_sign_up(client)
    assert "This service sends no mail. The code for " in shown
    assert f" is {place.format(tmp=tmp_path)}" in shown
    assert "It expires in 15 minutes." in shown
    for html in (login, request, shown):
        assert [word for word in ("We sent", "We mail", "Send a", "Send me", "Send it") if word in html] == []


@pytest.mark.parametrize(
    ("folder", "place"), [("{tmp}", "in the newest file in {tmp}."), (None, "in the log of this service.")]
)
def test_without_mail_the_message_says_where_a_log_in_code_is(
    client, settings, tmp_path, alice, folder, place
):
    kind = "filebased" if folder else "console"
    settings.EMAIL_BACKEND = f"django.core.mail.backends.{kind}.EmailBackend"
    settings.EMAIL_FILE_PATH = folder and str(tmp_path)
    answer = client.post("/account/login/code/", {"email": alice.email}, follow=True)
    (message,) = [str(one) for one in answer.context["messages"]]
    assert message == f"The log-in code for {alice.email} is {place.format(tmp=tmp_path)}"


def test_a_code_that_is_asked_for_too_often_is_refused_in_words(client):
    words_of_sign_up(client)
    answer = client.post("/account/confirm-email/", {"action": "resend"})
    assert (answer.status_code, answer.headers["content-type"]) == (429, "text/html; charset=utf-8")
    assert "Wait a minute and try again." in answer.content.decode()
