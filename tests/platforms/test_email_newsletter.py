"""An email newsletter's settings, what each reply of a mail server means, and the check of an account."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes
from email.policy import default
from html import unescape

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from config.core.http_client import Client, Policy
from pipeline.mailing.subscribers import normalize_address
from pipeline.platforms.base import Account
from pipeline.platforms.email_newsletter import PLUGIN
from pipeline.platforms.email_newsletter.message import (
    Envelope,
    Footer,
    compose_mail,
    dns_record,
    issue_of,
    read_key,
)
from pipeline.platforms.email_newsletter.session import classify_reply
from pipeline.platforms.payload_types import Payload, PayloadAsset
from pipeline.plugins import ConfigInvalid, NeedsReconnect, Refused, TryLater
from pipeline.render import colour
from pipeline.text.newsletter_sections import NewsletterSection, as_content, body_of
from pipeline.text.plain_text import plain_text
from tests.pipeline.mailing.conftest import certified
from tests.pipeline.mailing.mail_server import PASSWORD, MailServer

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
HTTP = Client(Policy(allow_loopback=True, user_agent="tests"))
GIVEN = {
    "host": "127.0.0.1",
    "from_name": "Harbour News",
    "from_address": "news@harbour.example",
    "imprint": "1 Quay Street",
}


def pem(key, form=PrivateFormat.PKCS8):
    return key.private_bytes(Encoding.PEM, form, NoEncryption()).decode()


@pytest.fixture(scope="module")
def key():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def server():
    made = MailServer()
    made.start()
    yield made
    made.stop()


@pytest.fixture
def tls_server(tmp_path, monkeypatch):
    context, trusting = certified(tmp_path)
    monkeypatch.setattr("pipeline.platforms.email_newsletter.session.tls_context", lambda: trusting)
    made = MailServer(tls=context)
    made.start()
    yield made
    made.stop()


def account(port=25, credentials=None, **config):
    clean = PLUGIN.clean_config({**GIVEN, "port": port, "encryption": "none", **config})
    return Account("out_x", clean, credentials or {})


def check(one):
    return PLUGIN.check_account(one, http=HTTP, now=NOW)


# --- Replies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stage", "code", "text", "verdict"),
    [
        ("end", 250, "2.0.0 Queued", "sent"),
        ("data", 354, "Go on", "sent"),
        ("mail", 421, "4.3.2 Closing", "wait"),
        ("rcpt", 421, "Closing", "wait"),
        ("end", 421, "Closing", "wait"),
        ("mail", 450, "Busy", "wait"),
        ("mail", 452, "4.3.1 Full", "wait"),
        ("rcpt", 450, "4.7.1 Greylisted", "later"),
        ("rcpt", 451, "Later", "later"),
        ("rcpt", 452, "4.2.2 Over quota", "later"),
        ("end", 451, "4.7.0 Rate limited", "later"),
        ("mail", 530, "5.7.0 Authenticate first", "reconnect"),
        ("mail", 535, "5.7.8 Bad credentials", "reconnect"),
        ("rcpt", 550, "5.1.1 No such user", "bounced"),
        ("rcpt", 551, "5.1.6 Moved", "bounced"),
        ("rcpt", 553, "5.1.3 Bad address", "bounced"),
        ("rcpt", 550, "No such user", "bounced"),
        ("end", 550, "5.1.1 No such user", "bounced"),
        ("end", 550, "Rejected", "failed"),
        ("rcpt", 550, "5.2.1 Disabled", "failed"),
        ("rcpt", 552, "5.2.2 Full", "failed"),
        ("rcpt", 554, "No", "failed"),
        ("rcpt", 550, "5.7.1 Relaying denied", "policy"),
        ("end", 550, "5.7.26 Not authenticated by DMARC", "policy"),
        ("rcpt", 550, "5.1.8 Bad sender", "policy"),
        ("mail", 553, "5.1.7 Bad sender", "policy"),
        ("mail", 550, "No", "policy"),
        ("end", 552, "5.3.4 Too big", "too_big"),
        ("mail", 552, "Too big", "too_big"),
    ],
)
def test_each_reply_is_judged(stage, code, text, verdict):
    assert classify_reply(stage, code, text) == verdict


# --- Settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("from_address", "news"),
        ("from_address", "news@harbour.example\r\nBcc: x@y.example"),
        ("reply_to", "a b@harbour.example"),
        ("return_address", "@harbour.example"),
        ("bounce_domain", "harbour"),
        ("from_name", "Harbour\r\nBcc: x@y.example"),
        ("host", "mail.example\r\n"[:-2] + "\tx"),
        ("port", 0),
        ("port", 65_536),
        ("mails_per_minute", 0),
        ("mails_per_minute", 6001),
        ("encryption", "maybe"),
    ],
)
def test_a_setting_that_can_not_be_used_is_named(name, value):
    with pytest.raises(ConfigInvalid) as invalid:
        PLUGIN.clean_config({**GIVEN, name: value})
    assert [one.field for one in invalid.value.problems] == [f"config.{name}"]


@pytest.mark.parametrize("given", [{"dkim_domain": "harbour.example"}, {"dkim_selector": "news1"}])
def test_dkim_needs_domain_and_selector(given):
    with pytest.raises(ConfigInvalid):
        PLUGIN.clean_config({**GIVEN, **given})


def test_the_edges_of_the_settings_pass():
    clean = PLUGIN.clean_config({**GIVEN, "port": 65_535, "mails_per_minute": 6000})
    assert (clean["port"], clean["mails_per_minute"], clean["encryption"]) == (65_535, 6000, "starttls")


@pytest.mark.parametrize(("title", "codes"), [("x" * 250, []), ("x" * 251, ["too_long"]), ("", ["required"])])
def test_a_newsletter_needs_a_subject_of_some_length(title, codes):
    payload = Payload("gen_x", 1, "newsletter", title, "words", "text")
    found = PLUGIN.validate(account(), PLUGIN.adapt(account(), payload))
    assert [one.code for one in found] == codes


# --- The account -----------------------------------------------------------------------------------------------------


def test_the_check_logs_in_and_sends_nothing(tls_server):
    one = account(tls_server.port, {"password": PASSWORD}, encryption="starttls", user="alice")
    info = check(one)
    assert (info.external_id, info.name) == ("news@harbour.example", "Harbour News")
    assert info.notes == ("Mails aren't signed here: your mail server has to sign them with DKIM.",)
    assert tls_server.taken == []


def test_a_wrong_password_needs_a_reconnect_and_is_not_quoted(tls_server):
    one = account(tls_server.port, {"password": "not-the-password"}, encryption="starttls", user="alice")
    with pytest.raises(NeedsReconnect) as refused:
        check(one)
    assert (refused.value.code, refused.value.platform_status) == ("login_refused", 535)
    assert "not-the-password" not in f"{refused.value.message} {refused.value.platform_message}"


def test_a_log_in_that_is_put_off_is_tried_later(tls_server):
    tls_server.refuses_login = "454 4.7.0 Temporary failure"
    one = account(tls_server.port, {"password": PASSWORD}, encryption="starttls", user="alice")
    with pytest.raises(TryLater) as later:
        check(one)
    assert later.value.platform_status == 454


def test_a_certificate_that_nobody_vouches_for_is_refused(tls_server, monkeypatch):
    import ssl

    monkeypatch.setattr("pipeline.platforms.email_newsletter.session.tls_context", ssl.create_default_context)
    with pytest.raises(Refused) as refused:
        check(account(tls_server.port, encryption="starttls"))
    assert refused.value.code == "certificate"


def test_a_server_without_starttls_is_refused(server):
    with pytest.raises(Refused) as refused:
        check(account(server.port, encryption="starttls"))
    assert refused.value.code == "not_offered"


def test_a_server_without_tls_is_refused(server):
    with pytest.raises((Refused, TryLater)) as refused:
        check(account(server.port, encryption="tls"))
    assert refused.value.code in {"tls_failed", "unreachable"}


def test_no_password_goes_out_in_the_clear(server):
    with pytest.raises(Refused) as refused:
        check(account(server.port, {"password": PASSWORD}, user="alice"))
    assert (refused.value.code, server.sessions) == ("password_in_clear", 0)


def test_nobody_at_home_is_tried_later():
    with pytest.raises(TryLater) as later:
        check(account(1))
    assert later.value.code == "unreachable"


def test_the_guard_holds_for_mail_too(server):
    guarded = Client(Policy(user_agent="tests"))
    with pytest.raises(Refused) as refused:
        PLUGIN.check_account(account(server.port), http=guarded, now=NOW)
    assert (refused.value.code, server.sessions) == ("address_refused", 0)


# --- DKIM ------------------------------------------------------------------------------------------------------------


def test_the_check_tells_what_to_publish(server, key):
    given = {"dkim_domain": "harbour.example", "dkim_selector": "news1"}
    one = account(server.port, {"dkim_key": pem(key)}, **given)
    (note,) = check(one).notes
    assert note == f"Publish this DNS record: {dns_record(one)}"
    assert 'news1._domainkey.harbour.example TXT "v=DKIM1; k=rsa; p=MII' in note
    other = account(server.port, {"dkim_key": pem(key)}, **{**given, "dkim_domain": "other.example"})
    assert check(other).notes[1].startswith("The sender's address isn't of other.example")


@pytest.mark.parametrize(
    "mangle", [lambda text: text, lambda text: text.replace("\n", " "), lambda text: text.replace("\n", "")]
)
@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_a_key_is_read_however_a_form_left_it(key, mangle, form):
    assert read_key(mangle(pem(key, form))).private_numbers() == key.private_numbers()


@pytest.mark.parametrize("kind", ["none", "rubbish", "curve", "short"])
def test_a_key_that_can_not_be_used_is_refused_unquoted(kind):
    text = {
        "none": "not a key",
        "rubbish": "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----",
        "curve": pem(ec.generate_private_key(ec.SECP256R1())),
        "short": pem(rsa.generate_private_key(public_exponent=65537, key_size=1024)).replace("A", "B"),
    }[kind]
    with pytest.raises(Refused) as refused:
        read_key(text)
    assert refused.value.code == "dkim_key"
    assert not any(line and line in refused.value.message for line in text.splitlines()[1:-1])


@pytest.mark.parametrize("given", [{"dkim_domain": "harbour.example", "dkim_selector": "a"}, {}])
def test_half_a_signature_is_refused(server, key, given):
    credentials = {} if given else {"dkim_key": pem(key)}
    with pytest.raises(Refused) as refused:
        check(account(server.port, credentials, **given))
    assert refused.value.code == "dkim_incomplete"


# --- The mail --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_no_title_address_or_name_adds_a_header(end):
    title = f"Trams{end}Bcc: eve@evil.example{end}{end}<script>alert(1)</script>"
    issue = issue_of(Payload("gen_x", 1, "newsletter", title, "Words.", "markdown"), GIVEN)
    to = Envelope(
        "bob@example.test", "<1@x>", "list.x", "https://pipeline.example/u/x", "mailto:x@example.test"
    )
    written = message_from_bytes(compose_mail(account(), issue, to, now=NOW), policy=default)
    assert sorted(key.lower() for key in written) == sorted(HEADERS)
    assert (written["To"], written["Bcc"]) == ("bob@example.test", None)
    assert written["List-Unsubscribe"] == "<https://pipeline.example/u/x>, <mailto:x@example.test>"
    assert "<script" not in written.get_body(("html",)).get_content()
    for name in ("from_name", "from_address", "reply_to", "return_address"):
        with pytest.raises(ConfigInvalid):
            PLUGIN.clean_config({**GIVEN, name: f"news@harbour.example{end}Bcc: eve@evil.example"})
    assert normalize_address(f"bob@example.test{end}Bcc: eve@evil.example") is None


HEADERS = (
    *(
        "message-id",
        "list-id",
        "list-unsubscribe",
        "list-unsubscribe-post",
        "precedence",
        "from",
        "to",
        "subject",
    ),
    *("date", "mime-version", "content-type"),
)


def test_words_and_pictures_are_written_safely():
    payload = Payload(
        "gen_x",
        1,
        "newsletter",
        "Trams & <trains>\nfor all",
        'Hello <script>alert(1)</script>\n\n.\n\n<a href="javascript:x">x</a> ✓',
        "html",
        language='de"><script>',
        link="https://example.com/?a=1&b=2",
        assets=(PayloadAsset("https://example.com/a.png", "image/png", alt_text='A "tram"'),),
    )
    issue = issue_of(payload, {})
    raw = compose_mail(
        account(reply_to="desk@harbour.example"),
        issue,
        Envelope(
            "ann@readers.example",
            "<1@harbour.example>",
            "out_x.harbour.example",
            "https://pipeline.example/u/" + "x" * 32,
            footer=Footer("You <asked>.", "Unsubscribe"),
        ),
        now=NOW,
    )
    assert all(len(line) <= 998 for line in raw.split(b"\r\n"))
    assert raw.isascii()
    mail = message_from_bytes(raw, policy=default)
    text, html = (part.get_content() for part in mail.iter_parts())
    assert mail["Subject"] == "Trams & <trains> for all"
    assert mail["Reply-To"] == "desk@harbour.example"
    assert "script>" not in html.replace("&lt;trains&gt;", "")
    assert "javascript:" not in html
    assert '<img src="https://example.com/a.png" alt="A &quot;tram&quot;"' in html
    assert '<html lang="en" dir="ltr">' in html
    assert "You &lt;asked&gt;." in html
    assert "https://example.com/?a=1&amp;b=2" in html
    assert "✓" in text
    assert "You <asked>." in text


# --- The frame -------------------------------------------------------------------------------------------------------

STORIES = (
    NewsletterSection(
        "Trams approved",
        "The council voted *14 to 9*.\n\nIt opens in 2029.",
        "https://a.example/trams?x=1#top",
    ),
    NewsletterSection("Bread & butter", "A bakery opens.", "https://www.b.example/bread"),
    NewsletterSection("No link", "Nobody knows more."),
)


def newsletter(sections=STORIES, title="Trams and two more", **given):
    content = {"subject": "Trams & bread", "preheader": "A bakery <opens>.", "sections": as_content(sections)}
    body = body_of(title, sections)
    values = {"language": "en", "content": content, "link": "https://a.example/trams?x=1#top", **given}
    return Payload("gen_x", 1, "newsletter", title, body, "markdown", **values)


def parts_of(payload, **config):
    one = account(**config)
    envelope = Envelope(
        "ann@readers.example",
        "<1@h.example>",
        "l",
        "https://p.example/u/x",
        footer=Footer("You asked.", "Unsubscribe"),
    )
    mail = message_from_bytes(
        compose_mail(one, issue_of(payload, one.config), envelope, now=NOW), policy=default
    )
    text, html = (part.get_content() for part in mail.iter_parts())
    return mail["Subject"], text, html


def test_a_newsletter_has_its_subject_preheader_and_stories_in_one_frame():
    subject, text, html = parts_of(newsletter())
    assert subject == "Trams & bread"
    inside = html.partition("<body")[2]
    # An inbox reads on after the subject with the first words of the mail.
    assert re.sub(r"<[^>]*>", "", inside.partition(">")[2]).strip().startswith("A bakery &lt;opens&gt;.")
    assert re.findall(r"<h1[^>]*>(.*?)</h1>", html) == ["Trams and two more"]
    assert [plain_text(one, "html") for one in re.findall(r"<h2[^>]*>(.*?)</h2>", html)] == [
        "Trams approved",
        "Bread & butter",
        "No link",
    ]
    assert [plain_text(one, "html") for one in re.findall(r'<p class="where"[^>]*>(.*?)</p>', html)] == [
        "a.example",
        "b.example",
    ]
    assert "<em>14 to 9</em>" in html
    assert html.count('href="https://a.example/trams?x=1#top"') == 2
    assert "1 Quay Street" in html
    assert text.replace("\r\n", "\n") == (
        "Trams and two more\n==================\n\n"
        "Trams approved\n--------------\n\nThe council voted 14 to 9.\n\nIt opens in 2029.\n\n"
        "Read more: https://a.example/trams?x=1#top\n\n"
        "Bread & butter\n--------------\n\nA bakery opens.\n\nRead more: https://www.b.example/bread\n\n"
        "No link\n-------\n\nNobody knows more.\n\n"
        "-- \nYou asked.\n1 Quay Street\nUnsubscribe: https://p.example/u/x\n"
    )


def test_a_single_story_is_told_once_with_one_way_on():
    story = NewsletterSection("Trams approved", "The council voted.", "https://a.example/trams")
    _, text, html = parts_of(newsletter((story,), "Trams approved", link="https://a.example/trams"))
    assert re.findall(r"<h[1-6][^>]*>(.*?)</h[1-6]>", html) == ["Trams approved"]
    assert html.count("https://a.example/trams") == 1
    assert text.count("https://a.example/trams") == 1


@pytest.mark.parametrize("where", ["body", "link"])
def test_no_way_on_leads_to_a_script(where):
    one = NewsletterSection("Trams", "They roll.", "javascript:alert(1)" if where == "body" else "")
    given = {"link": "javascript:alert(1)"} if where == "link" else {}
    _subject, text, html = parts_of(newsletter([one], title="Trams", **given))
    assert ["They roll." in text, 'href="javascript' in html] == [True, False]


def test_title_that_only_begins_with_the_first_headline_is_not_said_twice():
    _, text, html = parts_of(newsletter(title="Trams approved \u00b7 Bread & butter"))
    assert [plain_text(one, "html") for one in re.findall(r"<h1[^>]*>(.*?)</h1>", html)] == ["Trams approved"]
    assert len(re.findall(r"<h2[^>]*>", html)) == 2
    assert text.startswith(("Trams approved\r\n-----", "Trams approved\n-----"))


def test_words_that_a_person_or_an_outlet_changed_are_the_words_of_the_mail():
    changed = replace(newsletter(), body="Hello.\n\n## One story\n\nOther **words**.")
    _, text, html = parts_of(changed)
    assert "Hello." in text
    assert "<strong>words</strong>" in html
    assert "Trams approved" not in f"{text}{html}"


def test_links_name_the_campaign_where_the_outlet_wants_it():
    body = "[own](https://c.example/?utm_source=x) [mail](mailto:a@b.example) [here](https://d.example/p?q=1)"
    stories = (STORIES[0], NewsletterSection("More", body))
    _, text, html = parts_of(newsletter(stories), utm_source="harbour-news")
    added = "utm_source=harbour-news&utm_medium=email&utm_campaign=trams-and-two-more"
    links = {unescape(one) for one in re.findall(r'href="([^"]*)"', html)}
    assert links == {
        f"https://a.example/trams?x=1&{added}#top",
        "https://c.example/?utm_source=x",
        "mailto:a@b.example",
        f"https://d.example/p?q=1&{added}",
        "https://p.example/u/x",
    }
    assert f"Read more: https://a.example/trams?x=1&{added}#top" in text


@pytest.mark.parametrize("accent", ["#ffee00", "#000000", "#abc", ""])
def test_links_and_buttons_can_be_read_in_any_colour_on_both_screens(accent):
    one = newsletter((STORIES[0],), "Trams approved")
    _, _, html = parts_of(one, **({"accent": accent} if accent else {}))
    light = re.search(r'class="button" style="[^"]*background: (#\w+)', html)[1]
    dark = re.search(r"\.card \.button \{ background: (#\w+)", html)[1]
    assert colour.contrast(light, "#ffffff") >= 4.5
    assert colour.contrast(dark, "#1a201d") >= 4.5
    assert colour.contrast(dark, "#101412") >= 4.5


def test_every_picture_has_an_alternative_text():
    pictures = (
        PayloadAsset("https://p.example/a.jpg", "image/jpeg", width=1200),
        PayloadAsset("x", "video/mp4"),
    )
    stories = (NewsletterSection("One", "![A tram](https://p.example/b.jpg)"), STORIES[1])
    _, _, html = parts_of(newsletter(stories, assets=pictures))
    images = re.findall(r"<img[^>]*>", html)
    assert [re.search(r'alt="([^"]*)"', one)[1] for one in images] == ["", "A tram"]
    assert 'width="520"' in images[0]


def test_a_newsletter_that_mail_programs_would_cut_off_is_refused():
    def problems(words):
        payload = newsletter((NewsletterSection("Long", "word " * words), STORIES[1]))
        return [(one.field, one.code) for one in PLUGIN.validate(account(), PLUGIN.adapt(account(), payload))]

    assert problems(18_000) == []
    assert problems(20_000) == [("body", "too_long")]


def test_the_whole_mail_of_the_longest_newsletter_stays_below_the_line():
    config = {"imprint": "x" * 500, "from_name": "n" * 120, "accent": "#b5476d"}
    fits = newsletter((NewsletterSection("Long", "word " * 18_000), STORIES[1]))
    _, _, html = parts_of(fits, **config)
    assert len(html.encode()) <= 100 * 1024


def test_a_language_from_right_to_left_turns_the_frame():
    _, _, html = parts_of(newsletter(language="ar"))
    assert '<html lang="ar" dir="rtl">' in html
    assert "\u2190" in html
    assert "\u2192" not in html


@pytest.mark.parametrize(("name", "value"), [("accent", "teal"), ("accent", "#12345"), ("utm_source", "a b")])
def test_a_look_that_can_not_be_used_is_named(name, value):
    with pytest.raises(ConfigInvalid) as invalid:
        PLUGIN.clean_config({**GIVEN, name: value})
    assert [one.field for one in invalid.value.problems] == [f"config.{name}"]
