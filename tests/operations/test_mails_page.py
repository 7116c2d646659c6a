"""The operators' page of mails: every template is there, in both forms, in our own words."""

from __future__ import annotations

import re

import pytest
from django.conf import settings
from django.core import mail

from accounts import mail_sending
from config.admin_site import mail_previews as admin_mails
from tests import caches
from tests.factories import UserFactory

TEMPLATES = settings.BASE_DIR / "templates"


def there(name):
    return name != "invitation" or (TEMPLATES / "mail/invitation.txt").exists()


NAMES = [name for name in admin_mails.mail_names() if there(name)]


def test_every_template_of_ours_has_a_sample():
    files = {path.stem for path in (TEMPLATES / "mail").glob("*.txt")}
    assert files - {template for template, _ in admin_mails.OUR_MAILS.values()} == set()


def test_every_sample_has_its_name():
    prefixes = {prefix.rpartition("/")[2] for prefix in admin_mails.ALLAUTH_MAILS}
    assert set(admin_mails.mail_names()) == {*admin_mails.OUR_MAILS, *prefixes}


def test_every_template_of_allauth_that_we_rewrote_has_a_sample():
    files = {
        str(path.relative_to(TEMPLATES)).removesuffix("_message.txt")
        for folder in ("account", "mfa")
        for path in (TEMPLATES / folder / "email").glob("*_message.txt")
        if path.name != "base_message.txt"
    }
    assert files == set(admin_mails.ALLAUTH_MAILS)


@pytest.mark.parametrize("name", NAMES)
def test_each_mail_is_shown_as_text_and_as_html(browser, name):
    page = browser.get("/admin/mails/", {"mail": name})
    assert page.status_code == 200
    text, subject = page.context["text"], page.context["subject"]
    html = browser.get(f"/admin/mails/{name}.html")
    assert html.status_code == 200
    assert html["X-Frame-Options"] == "SAMEORIGIN"
    assert "style-src 'unsafe-inline'" in html["Content-Security-Policy"]
    assert "script-src" not in html["Content-Security-Policy"]
    assert "unsafe-inline" not in page["Content-Security-Policy"]
    # A variable without a value leaves a hole, and a tag that is wrongly written shows.
    assert not re.search(r"example\.com|  +\S|\{[{%]|\bNone\b|&#|&quot;", f"{subject}\n{text}")
    assert subject
    assert len(subject) <= 120
    assert "\n" not in subject
    # Each line of the text is in the HTML too.
    shown = re.sub(r"<[^>]+>", "", html.content.decode())
    for word in re.findall(r"[A-Za-z]{5,}", text):
        assert word in shown, word


def test_an_unknown_mail_is_not_there(browser):
    assert browser.get("/admin/mails/", {"mail": "nonsense"}).status_code == 404
    assert browser.get("/admin/mails/nonsense.html").status_code == 404


@pytest.mark.parametrize("path", ["/admin/mails/", "/admin/mails/digest.html"])
def test_only_operators_see_it(client, db, path):
    assert client.get(path).status_code == 302
    client.force_login(UserFactory())
    assert client.get(path, follow=True).status_code == 403


def test_nothing_in_a_name_becomes_markup_or_a_header():
    context = {
        "workspace": "A <b>\nBcc: x@example.test\n\nB",
        "address": "https://a.example/",
        "reason": "No <i>",
    }
    message = mail_sending.render("refused", "a@example.test", context)
    assert message.subject == "Access for A <b> Bcc: x@example.test B was refused"
    ((html, _),) = message.alternatives
    assert "<b>" not in html
    assert "No &lt;i&gt;" in html
    message.send()
    assert list(mail.outbox[0].message().keys()).count("Bcc") == 0


def test_the_sign_up_code_is_easy_to_find_in_development(settings, tmp_path, client, db):
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    settings.EMAIL_FILE_PATH = str(tmp_path)
    # Another test's sign-up counts against the limit of mails.
    caches.clear()
    client.post("/account/signup/", {"email": "newcomer@example.test", "password1": "a long enough phrase 9"})
    [written] = tmp_path.glob("*.log")
    # In the text, on a line of its own, before the HTML begins.
    head, _, _ = written.read_text().partition("text/html")
    assert re.search(r"^[A-Z0-9]{3,8}(-[A-Z0-9]{3,8})?$", head, re.MULTILINE)
    assert "Subject: Content pipeline: Your sign-up code" in head
