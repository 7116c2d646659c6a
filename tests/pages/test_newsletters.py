"""What subscribers see, and the workspace's page of its list."""

from __future__ import annotations

import io
import re

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from pipeline import limits, mailing
from pipeline.mailing import lifecycle
from pipeline.models import MailDelivery, Mailing, Outlet, Subscriber
from pipeline.outlets.outlet_client import account_of
from pipeline.platforms import email_newsletter
from tests.factories import PublicationFactory
from tests.pipeline.mailing.conftest import make_letter, subscribe
from tests.pipeline.steps import make_items, reread

pytestmark = pytest.mark.django_db


@pytest.fixture
def letter(newsroom):
    return make_letter(newsroom, 25)


@pytest.fixture
def ann(letter):
    return subscribe(letter, "ann")[0]


@pytest.fixture
def stranger():
    return Client(enforce_csrf_checks=True)


def form_of(letter):
    return reverse("subscribe", kwargs={"secret": letter.secret})


# --- Subscribers -----------------------------------------------------------------------------------------------------


def test_the_answer_is_the_same_for_known_and_unknown(letter, ann):
    browser = Client()
    answers = [
        browser.post(form_of(letter), {"email": email})
        for email in ("bob@readers.example", ann.email, "bob@readers.example")
    ]
    assert [one.status_code for one in answers] == [200, 200, 200]
    # Django masks its token anew each time.
    shown = {re.sub(rb'csrfmiddlewaretoken" value="\w+"', b"", one.content) for one in answers}
    assert len(shown) == 1
    assert dict(Subscriber.everywhere.values_list("email", "status")) == {
        ann.email: "active",
        "bob@readers.example": "pending",
    }
    assert MailDelivery.everywhere.count() == 1


def test_the_form_says_what_is_wrong(letter):
    answer = Client().post(form_of(letter), {"email": "bob"})
    assert answer.status_code == 400
    assert "Enter a valid email address." in answer.content.decode()
    assert Subscriber.everywhere.count() == 0


@pytest.mark.usefixtures("one_minute")
def test_sign_ups_of_one_client_are_counted(letter, monkeypatch):
    monkeypatch.setattr(limits, "SUBSCRIBE_CALLS", "2/h")
    browser = Client()
    answers = [browser.post(form_of(letter), {"email": f"r{n}@readers.example"}) for n in range(3)]
    assert [one.status_code for one in answers] == [200, 200, 429]
    assert Subscriber.everywhere.count() == 2


def test_other_sites_can_not_send_the_form(letter, stranger):
    assert stranger.post(form_of(letter), {"email": "bob@readers.example"}).status_code == 403
    assert Subscriber.everywhere.count() == 0


@pytest.mark.parametrize("ended", ["outlet", "workspace", "kind"])
def test_no_form_where_there_is_no_newsletter(letter, newsroom, ended):
    if ended == "outlet":
        Outlet.everywhere.filter(pk=letter.pk).update(deleted_at=timezone.now())
    elif ended == "workspace":
        type(newsroom).everywhere.filter(pk=newsroom.pk).update(whitelisted_at=None)
    else:
        Outlet.everywhere.filter(pk=letter.pk).update(platform="feed")
    assert Client().get(form_of(letter)).status_code == 404


def test_looking_confirms_nothing_and_pressing_does(letter):
    (bob,) = subscribe(letter, "bob", status="pending")
    address = reverse("confirm_letter", kwargs={"token": bob.token})
    looked = Client().get(address)
    assert (looked.status_code, reread(bob).status) == (200, "pending")
    assert "Subscribe bob@readers.example?" in looked.content.decode()
    Client().head(address)
    assert reread(bob).status == "pending"
    pressed = Client().post(address)
    assert "bob@readers.example is subscribed." in pressed.content.decode()
    assert reread(bob).status == "active"


def test_one_click_unsubscribes_without_cookies_and_looking_does_not(ann, stranger):
    address = reverse("unsubscribe", kwargs={"token": ann.token})
    looked = stranger.get(address)
    assert (looked.status_code, reread(ann).status) == (200, "active")
    assert looked["X-Robots-Tag"] == "noindex, nofollow"
    # RFC 8058, 3.1: this body, no cookies; a redirect would not be followed.
    provider = Client(enforce_csrf_checks=True)
    answer = provider.post(
        address, "List-Unsubscribe=One-Click", content_type="application/x-www-form-urlencoded"
    )
    assert (answer.status_code, answer.content, dict(answer.cookies)) == (200, b"Unsubscribed.\n", {})
    assert reread(ann).status == "unsubscribed"


def test_one_click_works_as_multipart_too(ann):
    provider = Client(enforce_csrf_checks=True)
    provider.post(reverse("unsubscribe", kwargs={"token": ann.token}), {"List-Unsubscribe": "One-Click"})
    assert reread(ann).status == "unsubscribed"


def test_the_button_unsubscribes_and_takes_it_back(ann, stranger):
    address = reverse("unsubscribe", kwargs={"token": ann.token})
    left = stranger.post(address, {"act": "unsubscribe"})
    assert "ann@readers.example is unsubscribed." in left.content.decode()
    assert reread(ann).status == "unsubscribed"
    back = stranger.post(address, {"act": "come_back"})
    assert "ann@readers.example is subscribed to this newsletter." in back.content.decode()
    assert reread(ann).status == "active"


@pytest.mark.parametrize("body", [b"", b"act=x", b"\xff\xfe", b"List-Unsubscrib=One-Click"])
def test_another_body_changes_nothing(ann, stranger, body):
    address = reverse("unsubscribe", kwargs={"token": ann.token})
    stranger.post(address, body, content_type="application/x-www-form-urlencoded")
    assert reread(ann).status == "active"


def test_guesses_find_nothing(db):
    for name in ("unsubscribe", "confirm_letter"):
        address = reverse(name, kwargs={"token": "x" * 32})
        assert [Client().get(address).status_code, Client().post(address).status_code] == [404, 404]


def test_returned_mail_comes_in_by_the_secret_alone(letter, ann):
    secret = mailing.get_or_create_queue(letter).bounce_secret
    raw = f"Subject: unsubscribe {ann.token}\r\n\r\n".encode()

    def post(secret, raw=raw):
        return Client().post(f"/hooks/mail/{secret}", raw, content_type="message/rfc822")

    assert post("x" * 32).status_code == 404
    assert reread(ann).status == "active"
    assert post(secret).json() == {"outcome": "unsubscribed"}
    assert reread(ann).status == "unsubscribed"
    assert post(secret, b"x" * (limits.BOUNCE_BYTES + 1)).status_code == 413
    assert Client().get(f"/hooks/mail/{secret}").status_code == 405


# --- The workspace ---------------------------------------------------------------------------------------------------


def page_of(letter, name="subscribers", **more):
    return reverse(name, kwargs={"ws": letter.workspace_id, "out": letter.pk, **more})


def test_the_outlets_page_leads_to_its_list(editor, as_person, vera, newsroom, letter, ann):
    subscribe(letter, "zoe", status="unsubscribed")
    address = reverse("outlet_page", kwargs={"ws": newsroom.pk, "out": letter.pk})
    page = editor.get(address).content.decode()
    assert "1 subscriber" in page
    assert page.count(f'href="{page_of(letter)}"') == 2
    looking = as_person(vera).get(address).content.decode()
    assert ("1 subscriber" in looking, page_of(letter) in looking) == (True, False)
    listed = editor.get(page_of(letter)).content.decode()
    assert f'href="{page_of(letter)}" aria-current="page"' in listed
    feed = Outlet.everywhere.get(workspace=newsroom, platform="feed")
    other = editor.get(reverse("outlet_page", kwargs={"ws": newsroom.pk, "out": feed.pk}))
    assert (other.context["readers"], "Subscribers" in other.content.decode()) == (None, False)


def test_the_dns_record_to_publish_is_there_to_be_copied(editor, newsroom, letter):
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    letter.config |= {"dkim_domain": "harbour.example", "dkim_selector": "letter"}
    letter.credentials = {"dkim_key": pem}
    said = email_newsletter.dkim_notes(account_of(letter, is_open=True))
    Outlet.everywhere.filter(pk=letter.pk).update(profile={"notes": [*said, "Two: words <b>."]})
    answer = editor.get(reverse("outlet_page", kwargs={"ws": newsroom.pk, "out": letter.pk}))
    record, plain = answer.context["notes"]
    assert (record.text, record.name) == ("Publish this DNS record:", "letter._domainkey.harbour.example")
    assert record.value.startswith("v=DKIM1; k=rsa; p=")
    assert f'{record.text} {record.name} TXT "{record.value}"' == said[0]
    assert (plain.text, plain.name) == ("Two: words <b>.", "")
    page = answer.content.decode()
    assert [part in page for part in (record.name, record.value, "Two: words &lt;b&gt;.", pem[40:80])] == [
        True,
        True,
        True,
        False,
    ]


def test_the_list_is_searched_and_filtered(editor, letter, ann):
    subscribe(letter, "zoe", status="unsubscribed")
    everybody = editor.get(page_of(letter)).content.decode()
    assert (ann.email in everybody, "zoe@readers.example" in everybody) == (True, True)
    left = editor.get(page_of(letter), {"status": "unsubscribed"}).content.decode()
    assert (ann.email in left, "zoe@readers.example" in left) == (False, True)
    found = editor.get(page_of(letter), {"search": "ANN@"}).content.decode()
    assert (ann.email in found, "zoe@readers.example" in found) == (True, False)
    assert "Subscribed (1)" in everybody


def test_the_list_is_paged(editor, letter, monkeypatch):
    subscribe(letter, *(f"r{n:03}" for n in range(51)))
    first = editor.get(page_of(letter)).content.decode()
    address = first.split('<nav class="pager"')[1].split('href="?')[1].split('"')[0].replace("&amp;", "&")
    second = editor.get(f"{page_of(letter)}?{address}").content.decode()
    assert ("r050@" in first, "r000@" in first, "r000@" in second, "r050@" in second) == (
        True,
        False,
        True,
        False,
    )


def test_the_bounce_address_is_shown_to_owners_alone(editor, as_person, alice, letter):
    secret = mailing.get_or_create_queue(letter).bounce_secret
    assert secret not in editor.get(page_of(letter)).content.decode()
    assert secret in as_person(alice).get(page_of(letter)).content.decode()


def test_somebody_is_added_by_a_question(editor, letter):
    answer = editor.post(page_of(letter, "subscriber_add"), {"email": "Bob@readers.example"})
    assert answer.status_code == 302
    row = Subscriber.everywhere.get()
    assert (row.email, row.status, row.origin) == ("bob@readers.example", "pending", "hand")
    wrong = editor.post(page_of(letter, "subscriber_add"), {"email": "x y@readers.example"})
    assert wrong.status_code == 400
    assert "Enter a valid email address." in wrong.content.decode()


def test_an_import_needs_the_declaration(editor, letter):
    def upload(**more):
        file = io.BytesIO(b"email\nann@readers.example\nnobody\n")
        file.name = "list.csv"
        return editor.post(page_of(letter, "subscribers_import"), {"file": file, **more}, follow=True)

    assert upload().status_code == 400
    assert Subscriber.everywhere.count() == 0
    assert "1 address was added. 1 line without an address: nobody" in upload(consent="on").content.decode()
    assert Subscriber.everywhere.get().status == "active"


def test_the_list_is_exported_and_somebody_removed(editor, letter, ann):
    answer = editor.get(page_of(letter, "subscribers_export"))
    lines = b"".join(answer.streaming_content).decode().splitlines()
    assert [line.split(",")[:2] for line in lines] == [["email", "status"], [ann.email, "active"]]
    editor.post(page_of(letter, "subscriber_remove", sub=ann.pk))
    assert Subscriber.everywhere.count() == 0


def test_another_workspace_s_list_is_not_there(as_person, charlie, letter, ann):
    browser = as_person(charlie)
    assert browser.get(page_of(letter)).status_code == 404
    assert browser.post(page_of(letter, "subscriber_remove", sub=ann.pk)).status_code == 404
    assert Subscriber.everywhere.count() == 1


def test_a_mailing_is_shown_stopped_and_goes_on(editor, newsroom, letter, ann):
    item = make_items(newsroom)[0]
    publication = PublicationFactory(item=item, outlet=letter)
    made = Mailing.everywhere.create(
        workspace=newsroom, outlet=letter, publication=publication, subject="The tram", html="x", text="x"
    )
    Subscriber.everywhere.update(confirmed_at=made.created_at)
    assert lifecycle.spread_some(made, now=timezone.now()) is False
    shown = editor.get(page_of(letter)).content.decode()
    assert 'data-label="Left" class="number">1<' in shown
    editor.post(page_of(letter, "mailing_stop", mlg=made.pk))
    assert reread(made).status == "stopped"
    assert "Stopped by bob@example.test." in editor.get(page_of(letter)).content.decode()
    editor.post(page_of(letter, "mailing_stop", mlg=made.pk))
    assert reread(made).status == "stopped"
    editor.post(page_of(letter, "mailing_resume", mlg=made.pk))
    assert reread(made).status == "spreading"
