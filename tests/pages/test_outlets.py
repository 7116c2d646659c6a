"""The pages of outlets: the list, connecting, one outlet, its settings, disconnecting."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from config.core.ids import encode
from pipeline import outlets, plugins
from pipeline.models import Outlet, Publication, WorkspaceDefaults
from pipeline.pages.platform_mark import mark_of_platform
from pipeline.platforms.base import Platform
from pipeline.publish import steps as publish_steps
from pipeline.schedule import queues
from tests.factories import OutletFactory
from tests.pages.answers import at, errors, said, text_of
from tests.pipeline.steps import NOON, claimed, make_items, promise, reread
from tests.platforms import letterbox

SECRET = "canary-token-4711"


@pytest.fixture
def wall(httpserver, loopback):
    with letterbox.registered():
        made = letterbox.Wall(httpserver)
        made.good.add(SECRET)
        yield made


@pytest.fixture
def outlet(newsroom, wall, posts):
    return outlets.connect_outlet(
        newsroom,
        "letterbox",
        name="Corner",
        config={"server": wall.url},
        credentials={"token": SECRET},
        by="alice@example.test",
        now=timezone.now(),
    )


SOME = {"feed": "rss", "mastodon": "M", "wordpress": "WP", "linkedin": "LI", "youtube": "YT", "x": "X"}
FORM = {"config_too_long": "refuse", "config_link": "none", "secret_token": SECRET, "name": "Corner"}


# --- List and choice -------------------------------------------------------------------------------------------------


def test_a_new_workspace_is_told_what_to_do(owner, newsroom):
    answer = owner.get(at(newsroom, "outlets_page"))
    assert answer.templates[0].name == "pages/outlets/list.html"
    assert [row["outlet"].platform for row in answer.context["rows"]] == ["feed", "simulated"]
    assert "Connect your first account" in text_of(answer)
    assert at(newsroom, "outlet_add") in text_of(answer)


def test_a_viewer_sees_and_is_told_whom_to_ask(as_person, vera, newsroom):
    text = text_of(as_person(vera).get(at(newsroom, "outlets_page")))
    assert "Ask an owner to connect one." in text
    assert at(newsroom, "outlet_add") not in text


def test_the_list_tells_how_each_is_doing(owner, newsroom, outlet):
    Outlet.everywhere.filter(pk=outlet.pk).update(
        status="needs_reconnect",
        last_error={"code": "x", "message": "The token was revoked.", "at": "2026-01-01T00:00:00.000Z"},
        rests_until=timezone.now() + timedelta(hours=1),
    )
    answer = owner.get(at(newsroom, "outlets_page"))
    row = answer.context["rows"][-1]
    assert (row["outlet"].name, row["platform"], row["account"]) == ("Corner", "Letterbox", "@corner")
    assert (row["health"].label, row["health"].sentence) == (
        "Reconnect needed",
        "The token was revoked.",
    )
    assert "Paused until" in text_of(answer)
    assert "Connect your first account" not in text_of(answer)


@pytest.mark.parametrize(
    ("state", "who", "act"),
    [
        ({"status": "needs_reconnect"}, "owner", "reconnect"),
        ({"status": "needs_reconnect"}, "editor", "ask"),
        ({"expiry_told_at": NOON, "expires_at": NOON}, "owner", "reconnect"),
        ({"status": "disabled", "expiry_told_at": NOON, "expires_at": NOON}, "owner", "switch"),
        ({"status": "disabled"}, "editor", "switch"),
        ({"status": "disabled"}, "viewer", ""),
        ({}, "owner", ""),
    ],
)
def test_a_row_offers_what_mends_its_state(as_person, alice, bob, vera, newsroom, outlet, state, who, act):
    Outlet.everywhere.filter(pk=outlet.pk).update(**state)
    person = {"owner": alice, "editor": bob, "viewer": vera}[who]
    text = text_of(as_person(person).get(at(newsroom, "outlets_page")))
    acts = {
        "reconnect": at(newsroom, "outlet_reconnect", out=outlet.pk),
        "ask": "Ask an owner to reconnect it.",
        "switch": at(newsroom, "outlet_switch", out=outlet.pk),
    }
    assert [name for name, sign in acts.items() if sign in text] == ([act] if act else [])


def test_switching_on_in_the_list_stays_there(editor, newsroom, outlet):
    Outlet.everywhere.filter(pk=outlet.pk).update(status="disabled")
    answer = editor.post(at(newsroom, "outlet_switch", out=outlet.pk), {"on": "yes", "list": ""})
    assert answer["Location"] == at(newsroom, "outlets_page")
    assert reread(outlet).status == "ok"


def posted(item, outlet, **changes):
    state = {"status": "published", "published_at": NOON, **changes}
    return Publication.everywhere.create(
        workspace=item.workspace, item=item, outlet=outlet, platform=outlet.platform, revision=1, **state
    )


def test_a_row_says_what_it_takes_and_what_was_posted_last(editor, newsroom, outlet):
    first, second, third = (make_items(newsroom, title=f"Post {n}", external_id=f"p{n}")[0] for n in range(3))
    last = posted(first, outlet)
    posted(second, outlet, published_at=NOON - timedelta(hours=1))
    posted(third, outlet, status="failed", published_at=None)
    rows = editor.get(at(newsroom, "outlets_page")).context["rows"]
    assert [row["post"] for row in rows[:-1]] == [None, None]
    assert (rows[-1]["takes"], rows[-1]["post"].pk, rows[-1]["has_page"]) == ("Short texts", last.pk, True)
    # Of a post whose item was deleted the moment stays.
    type(first).everywhere.filter(pk=first.pk).update(deleted_at=NOON)
    row = editor.get(at(newsroom, "outlets_page")).context["rows"][-1]
    assert (row["post"].pk, row["has_page"]) == (last.pk, False)


def test_the_list_asks_as_much_for_many_as_for_one(editor, newsroom, outlet):
    item = make_items(newsroom)[0]

    def cost():
        with CaptureQueriesContext(connection) as asked:
            editor.get(at(newsroom, "outlets_page"))
        return len(asked)

    posted(item, outlet)
    cost()
    one = cost()
    for number in range(20):
        posted(item, OutletFactory(workspace=newsroom, name=f"Stage {number}"))
    assert cost() == one


def test_each_platform_has_a_mark_of_its_own():
    marks = {one.kind: mark_of_platform(one) for one in plugins.every("platforms", Platform)}
    assert {kind: mark.icon or mark.letters for kind, mark in marks.items() if kind in SOME} == SOME
    assert all(1 <= mark.colour <= 8 for mark in marks.values())
    assert len({(mark.icon, mark.letters, mark.colour) for mark in marks.values()}) == len(marks)


def test_a_platform_may_name_the_letters_of_its_mark(monkeypatch):
    platform = plugins.get("platforms", "mastodon", Platform)
    monkeypatch.setattr(type(platform), "letters", "Md")
    assert mark_of_platform(platform).letters == "Md"


def test_only_connectable_platforms_are_offered(owner, newsroom, wall):
    kinds = {one["kind"]: one for one in owner.get(at(newsroom, "outlet_add")).context["kinds"]}
    assert kinds["letterbox"] == {
        "kind": "letterbox",
        "label": "Letterbox",
        "mark": mark_of_platform(plugins.get("platforms", "letterbox", Platform)),
        "summary": "Posts to a letterbox on a wall.",
        "takes": "Short texts",
    }
    assert not {"feed", "simulated"} & set(kinds)


@pytest.mark.parametrize("kind", ["ghost", "mastodon", "wordpress"])
def test_the_form_says_what_the_platform_was_tested_against(owner, newsroom, kind):
    sentence = plugins.get("platforms", kind, Platform).evidence.sentence
    assert sentence.startswith("Tested ")
    assert sentence in text_of(owner.get(at(newsroom, "outlet_connect", kind=kind)))


@pytest.mark.parametrize("kind", ["feed", "simulated", "nothing"])
def test_what_cannot_be_connected_has_no_page(owner, newsroom, kind):
    assert owner.get(at(newsroom, "outlet_connect", kind=kind)).status_code == 404


# --- Connect ---------------------------------------------------------------------------------------------------------


def test_connect(owner, newsroom, wall):
    page = owner.get(at(newsroom, "outlet_connect", kind="letterbox"))
    assert list(page.context["form"].fields) == [
        "config_server",
        "config_sign",
        "secret_token",
        "secret_refresh",
        "config_too_long",
        "config_link",
        "name",
    ]
    assert 'type="password" name="secret_token"' in text_of(page)
    answer = owner.post(at(newsroom, "outlet_connect", kind="letterbox"), {**FORM, "config_server": wall.url})
    made = Outlet.everywhere.get(platform="letterbox")
    assert answer["Location"] == at(newsroom, "outlet_page", out=made.pk)
    assert said(answer) == ["Corner connected."]
    assert made.credentials.open_object() == {"token": SECRET}
    assert made.connected_by == "alice@example.test"


def test_connect_shows_each_error_at_its_field_and_no_secret(owner, newsroom, wall):
    address = at(newsroom, "outlet_connect", kind="letterbox")
    answer = owner.post(address, {**FORM, "config_server": "ftp://nowhere"})
    assert errors(answer) == {"config_server": ["Server: give a web address that begins with https://."]}
    assert SECRET not in text_of(answer)
    wall.failing = (401, "{token} is wrong")
    answer = owner.post(address, {**FORM, "config_server": wall.url})
    assert errors(answer) == {
        "__all__": ["Letterbox no longer accepts this account's credentials: [secret] is wrong."]
    }
    assert SECRET not in text_of(answer)
    assert Outlet.everywhere.filter(platform="letterbox").count() == 0


def test_a_secret_has_to_be_typed_again_after_an_error(owner, newsroom, wall):
    address = at(newsroom, "outlet_connect", kind="letterbox")
    html = text_of(owner.post(address, {**FORM, "config_server": "ftp://nowhere"}))
    assert ("Type it again: it isn&#x27;t kept after an error." in html, SECRET in html) == (True, False)
    (field,) = re.findall(r'<input type="password" name="secret_token"[^>]*>', html)
    assert ("required" in field, "value=" in field, "id_secret_token_again" in field) == (True, False, True)


def test_an_address_stays_readable_after_an_error(owner, newsroom):
    address = at(newsroom, "outlet_connect", kind="discord")
    html = text_of(
        owner.post(
            address, {"secret_webhook_url": "https://discord.example/api/webhooks/4711", "name": "Desk"}
        )
    )
    assert 'type="text" name="secret_webhook_url" value="https://discord.example/api/webhooks/4711"' in html


def test_connect_twice_by_a_double_click_makes_one(owner, newsroom, wall):
    form = {**FORM, "config_server": wall.url, "once": "abc"}
    for _ in range(2):
        owner.post(at(newsroom, "outlet_connect", kind="letterbox"), form)
    assert Outlet.everywhere.filter(platform="letterbox").count() == 1


def test_a_session_that_ended_keeps_no_secret(left_alone, alice, newsroom, wall):
    client = left_alone(alice)
    client.post(at(newsroom, "outlet_connect", kind="letterbox"), {**FORM, "config_server": wall.url})
    kept = str([one.get_decoded() for one in Session.objects.all()]) + str(dict(client.session))
    assert "config_server" in kept
    assert SECRET not in kept


def test_oauth_without_an_application_says_who_can_help(owner, newsroom, wall, monkeypatch):
    from pipeline.platforms.base import OAuth

    setup = "Register one at letterbox.example."
    monkeypatch.setattr(
        letterbox.Letterbox, "oauth", OAuth("https://a.example", "https://t.example", ("w",), setup=setup)
    )
    text = text_of(owner.get(at(newsroom, "outlet_connect", kind="letterbox")))
    assert "secret_token" not in text
    assert ("The people who run this service must register an app there first." in text) or (
        "Connect with Letterbox" in text
    )


# --- One -------------------------------------------------------------------------------------------------------------


def test_one_outlet_tells_what_waits_and_what_failed(owner, newsroom, outlet, wall):
    first, second = (
        make_items(newsroom, title=f"Tram {one}", url=f"https://n.example/{one}")[0] for one in "ab"
    )
    promise(second, outlet, publish_at=timezone.now() + timedelta(days=1))
    wall.failing = (422, "{token}: too rude")
    publication = promise(first, outlet)
    publish_steps.advance_publication(claimed(publication))
    assert reread(publication).status == "failed"
    answer = owner.get(at(newsroom, "outlet_page", out=outlet.pk))
    assert [one["title"] for one in answer.context["waiting"]] == [second.title or second.excerpt]
    (failure,) = answer.context["failures"]
    assert (failure["error"]["code"], failure["error"]["class"]) == ("refused", "content")
    assert failure["error"]["message"] == "Letterbox refused it (status 422): [secret]: too rude."
    text = text_of(answer)
    assert "Change the item so that the platform takes it, then retry." in text
    assert SECRET not in text


def test_the_feed_shows_its_addresses(owner, newsroom):
    feed = Outlet.everywhere.get(workspace=newsroom, platform="feed")
    answer = owner.get(at(newsroom, "outlet_page", out=feed.pk))
    assert f"/feeds/{feed.secret}.atom" in text_of(answer)
    assert "Reconnect" not in text_of(answer)


def test_another_workspace_has_no_such_outlet(as_person, charlie, newsroom, outlet):
    assert as_person(charlie).get(at(newsroom, "outlet_page", out=outlet.pk)).status_code == 404


def test_an_address_that_is_no_web_address_is_no_link(owner, newsroom, outlet):
    Outlet.everywhere.filter(pk=outlet.pk).update(profile={"handle": "@x", "url": "javascript:alert(1)"})
    assert "javascript:" not in text_of(owner.get(at(newsroom, "outlet_page", out=outlet.pk)))


# --- Settings --------------------------------------------------------------------------------------------------------


def test_edit(as_person, bob, newsroom, outlet, wall):
    editor = as_person(bob)
    page = editor.get(at(newsroom, "outlet_edit", out=outlet.pk))
    assert list(page.context["form"].fields) == [
        "name",
        "per_day",
        "gap_minutes",
        "discloses_ai",
        "counts_clicks",
        "config_sign",
        "config_too_long",
        "config_link",
    ]
    form = {
        "name": "Box",
        "per_day": "5",
        "gap_minutes": "",
        "config_too_long": "shorten",
        "config_link": "end",
        "config_server": "https://thief.example",
    }
    editor.post(at(newsroom, "outlet_edit", out=outlet.pk), form)
    row = reread(outlet)
    assert (row.name, row.per_day, row.gap_minutes, row.discloses_ai) == ("Box", 5, None, False)
    assert (row.config["too_long"], row.config["server"]) == ("shorten", wall.url)


@pytest.mark.parametrize(
    ("platform", "is_offered"),
    [("wordpress", False), ("ghost", False), ("feed", False), ("email_newsletter", True), ("handoff", True)],
)
def test_counting_clicks_is_offered_where_something_can_be_counted(owner, newsroom, platform, is_offered):
    Outlet.everywhere.filter(workspace=newsroom, platform=platform).delete()
    made = Outlet.everywhere.create(workspace=newsroom, platform=platform, name="Other")
    page = owner.get(at(newsroom, "outlet_edit", out=made.pk))
    assert ("counts_clicks" in page.context["form"].fields) is is_offered


def test_edit_of_the_feed_keeps_its_title(owner, newsroom):
    feed = Outlet.everywhere.get(workspace=newsroom, platform="feed")
    form = {"name": "Own", "config_title": "The news", "discloses_ai": "on"}
    owner.post(at(newsroom, "outlet_edit", out=feed.pk), form)
    assert (reread(feed).name, reread(feed).config) == ("Own", {"title": "The news"})


def test_reconnect(owner, newsroom, outlet, wall):
    Outlet.everywhere.filter(pk=outlet.pk).update(status="needs_reconnect")
    page = owner.get(at(newsroom, "outlet_reconnect", out=outlet.pk))
    assert list(page.context["form"].fields) == ["config_server", "secret_token", "secret_refresh"]
    assert wall.url in text_of(page)
    form = {"config_server": wall.url, "secret_token": "token-1"}
    answer = owner.post(at(newsroom, "outlet_reconnect", out=outlet.pk), form)
    assert said(answer) == ["Corner reconnected. Waiting posts resume."]
    row = reread(outlet)
    assert (row.status, row.credentials.open_object()) == ("ok", {"token": "token-1"})


def test_switch_and_default(owner, newsroom, outlet):
    answer = owner.post(at(newsroom, "outlet_switch", out=outlet.pk))
    assert reread(outlet).status == "disabled"
    assert "Undo" in said(answer)[0]
    owner.post(at(newsroom, "outlet_switch", out=outlet.pk), {"on": "yes"})
    assert reread(outlet).status == "ok"
    owner.post(at(newsroom, "outlet_default", out=outlet.pk), {"default": "yes"})
    defaults = WorkspaceDefaults.objects.of(newsroom)
    assert encode("out", outlet.pk) in defaults.get().outlets
    owner.post(at(newsroom, "outlet_default", out=outlet.pk))
    assert encode("out", outlet.pk) not in defaults.get().outlets


def test_disconnect_asks_and_names_what_it_hits(owner, newsroom, outlet):
    publication = promise(make_items(newsroom)[0], outlet, publish_at=timezone.now() + timedelta(days=1))
    page = owner.get(at(newsroom, "outlet_disconnect", out=outlet.pk))
    assert "1 scheduled publication will be cancelled." in text_of(page)
    assert reread(outlet).deleted_at is None
    answer = owner.post(at(newsroom, "outlet_disconnect", out=outlet.pk))
    assert said(answer) == ["Corner disconnected. 1 scheduled post cancelled."]
    assert (reread(outlet).credentials, reread(publication).status) == (None, "cancelled")
    assert owner.get(at(newsroom, "outlet_page", out=outlet.pk)).status_code == 404
    assert Publication.everywhere.count() == 1


def test_a_workspace_keeps_its_feed(owner, newsroom):
    feed = Outlet.everywhere.get(workspace=newsroom, platform="feed")
    assert owner.post(at(newsroom, "outlet_disconnect", out=feed.pk)).status_code == 404
    assert reread(feed).deleted_at is None


# --- A secret that is made here --------------------------------------------------------------------------------------

RECEIVER = {"config_address": "https://hooks.example/in", "config_lost_answer": "wait", "secret_secret": ""}
OWN = "whsec_" + "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"


def secret_of(outlet):
    return Outlet.everywhere.get(pk=outlet.pk).credentials.open_object()["secret"]


def test_a_secret_that_nobody_gave_is_shown_once(owner, newsroom, as_person, bob):
    answer = owner.post(at(newsroom, "outlet_connect", kind="signed_webhook"), {**RECEIVER, "name": "Ours"})
    made = Outlet.everywhere.get(platform="signed_webhook")
    secret = secret_of(made)
    there = at(newsroom, "outlet_secret", out=made.pk)
    assert (answer.status_code, answer["Location"], said(answer)) == (302, there, ["Ours connected."])
    assert secret not in str([one.get_decoded() for one in Session.objects.all()])
    # Asking whether the page is there uses nothing up, and it is nobody else's.
    assert secret not in text_of(owner.head(there))
    assert secret not in text_of(as_person(bob).get(there))
    page = owner.get(there)
    assert secret in text_of(page)
    assert "no-store" in page["Cache-Control"]
    assert secret not in text_of(owner.get(there))
    assert secret not in text_of(owner.get(at(newsroom, "outlet_page", out=made.pk)))


def test_a_secret_of_one_s_own_is_never_shown(owner, newsroom):
    answer = owner.post(
        at(newsroom, "outlet_connect", kind="signed_webhook"),
        {**RECEIVER, "secret_secret": OWN, "name": "Ours"},
    )
    made = Outlet.everywhere.get(platform="signed_webhook")
    assert answer["Location"] == at(newsroom, "outlet_page", out=made.pk)
    assert secret_of(made) == OWN
    assert OWN not in text_of(owner.get(at(newsroom, "outlet_secret", out=made.pk)))


def test_connecting_again_without_a_secret_makes_a_new_one(owner, newsroom):
    owner.post(at(newsroom, "outlet_connect", kind="signed_webhook"), {**RECEIVER, "secret_secret": OWN})
    made = Outlet.everywhere.get(platform="signed_webhook")
    page = at(newsroom, "outlet_reconnect", out=made.pk)
    answer = owner.post(page, {**RECEIVER, "once": "2"})
    there = at(newsroom, "outlet_secret", out=made.pk)
    assert (answer["Location"], secret_of(made) != OWN) == (there, True)
    assert secret_of(made) in text_of(owner.get(there))


def test_an_outlet_names_the_queue_whose_slots_are_its(owner, newsroom, outlet):
    page = at(newsroom, "outlet_page", out=outlet.pk)
    assert owner.get(page).context["queue"].name == "Weekdays"
    values = {"name": "Nights", "timezone": "UTC", "outlets": [outlet.pk]}
    own = queues.create(newsroom, values, by="alice@example.test")
    assert owner.get(page).context["queue"] == own
    assert f'<a class="anywhere" href="{at(newsroom, "queues_page")}">Nights</a>' in text_of(owner.get(page))
