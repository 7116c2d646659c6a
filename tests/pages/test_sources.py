"""Sources as people manage them: an address becomes a source after a look, and its log says what was done."""

from __future__ import annotations

import re
import socket

import pytest
from django.utils.html import escape

from accounts import workspaces
from config.core import task_runner
from config.core.ids import encode
from pipeline.ingest import collect, pasted_url
from pipeline.models import GeneratedItem, HostSlot, Outlet, RawItem, Source, SourceEntry, WorkspaceDefaults
from pipeline.pages.sources.forms import TILES, load_readings, sign_readings
from pipeline.resources import feed_addresses
from tests.pages.answers import at
from tests.pipeline.steps import NOON

pytestmark = pytest.mark.usefixtures("loopback")

WORDS = (
    "The city council approved the tram line number {number} on Monday evening after six hours of debate. "
    "Construction of the northern depot begins in April and will employ about {number}40 people."
)


def feed(numbers, title="Tram news"):
    entries = "".join(
        f"<item><guid>entry-{number}</guid><title>Tram line {number} approved</title>"
        f"<link>https://trams.example/{number}</link><description>{WORDS.format(number=number)}</description></item>"
        for number in numbers
    )
    return f'<?xml version="1.0"?><rss version="2.0"><channel><title>{title}</title>{entries}</channel></rss>'


@pytest.fixture
def trams(httpserver):
    """A site with a feed of seven entries."""
    page = '<html><head><link rel="alternate" type="application/rss+xml" href="/feed.xml" title="Trams"></head></html>'
    httpserver.expect_request("/feed.xml").respond_with_data(
        feed(range(7, 0, -1)), content_type="application/rss+xml"
    )
    httpserver.expect_request("/").respond_with_data(page, content_type="text/html")
    return httpserver


def paste(client, workspace, address):
    return client.post(at(workspace, "source_add"), {"address": address})


def form_of(answer, **changes):
    """The second form as the page shows it."""
    form = answer.context["form"]
    shown = {name: form[name].value() for name in form.fields}
    return {**{name: value for name, value in shown.items() if value not in (None, "", False)}, **changes}


def saved(client, workspace, address, **changes):
    answer = client.post(
        at(workspace, "source_choose"),
        form_of(paste(client, workspace, address), save="", once="x", **changes),
    )
    assert answer.status_code == 302, answer.context["form"].errors
    return Source.everywhere.get(workspace=workspace, is_push=False, test=False)


def polled(source):
    # The rest between two fetches from one host.
    HostSlot.everywhere.all().delete()
    task_runner.work_all_due("ingest.poll_source")
    source.refresh_from_db()
    return source


# --- What an address is ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "source_type", "config"),
    [
        ("https://www.youtube.com/@trams", "youtube", {"handle": "@trams"}),
        ("https://youtube.com/@trams/videos", "youtube", {"handle": "@trams"}),
        (
            "https://www.youtube.com/channel/UC1234567890123456789012",
            "youtube",
            {"channel": "UC1234567890123456789012"},
        ),
        ("https://www.youtube.com/playlist?list=PL0123456789", "youtube", {"playlist": "PL0123456789"}),
        ("https://youtu.be/ryeBread003?si=x", "youtube", {"video": "ryeBread003"}),
        ("https://www.tiktok.com/@trams", "tiktok", {"username": "trams"}),
        (
            "https://www.tiktok.com/@trams/video/1",
            "tiktok",
            {"links": ["https://www.tiktok.com/@trams/video/1"]},
        ),
    ],
)
def test_channels_are_known_by_their_address(editor, newsroom, address, source_type, config):
    (found,) = paste(editor, newsroom, address).context["form"].fields["kind"].choices
    (opened_one,) = load_readings(sign_readings(pasted_url.read_address(address, now=newsroom.created_at)))
    assert (opened_one.type, opened_one.config) == (source_type, config)
    assert opened_one.label in str(found[1])


def test_an_address_of_nothing_on_youtube_is_no_source(editor, newsroom):
    answer = paste(editor, newsroom, "https://www.youtube.com/watch?v=abc")
    assert "no channel, playlist or video" in str(answer.context["form"].errors["address"])


def test_a_page_offers_its_feed_first(editor, newsroom, trams):
    answer = paste(editor, newsroom, trams.url_for("/"))
    ways = load_readings(answer.context["form"]["found"].value())
    assert [(way.type, way.config["url"]) for way in ways] == [
        ("rss", trams.url_for("/feed.xml")),
        ("scraper", trams.url_for("/")),
    ]


def test_a_feed_is_read_as_it_is(editor, newsroom, trams):
    answer = paste(editor, newsroom, trams.url_for("/feed.xml"))
    ways = load_readings(answer.context["form"]["found"].value())
    assert [(way.type, way.config) for way in ways] == [("rss", {"url": trams.url_for("/feed.xml")})]


@pytest.mark.parametrize("address", ["no address", "ftp://example.org/x", ""])
def test_what_is_no_address_is_told(editor, newsroom, address):
    assert list(paste(editor, newsroom, address).context["form"].errors) == ["address"]


def test_the_workspace_s_own_feed_is_no_source(editor, newsroom):
    feed = Outlet.everywhere.get(workspace=newsroom, platform="feed")
    form = paste(editor, newsroom, feed_addresses(feed.secret)["rss"]).context["form"]
    assert form.errors["address"][0].startswith("This is the workspace's own feed")


def test_an_address_that_does_not_answer_is_told(editor, newsroom, httpserver):
    httpserver.expect_request("/gone").respond_with_data("", status=404)
    form = paste(editor, newsroom, httpserver.url_for("/gone")).context["form"]
    assert list(form.errors) == ["address"]
    assert Source.everywhere.filter(is_push=False).count() == 0


@pytest.fixture
def unknown_name(monkeypatch):
    """A name that nobody has; others are looked up as usual."""
    look_up = socket.getaddrinfo

    def answer(host, *rest, **more):
        if host == "example.invalid":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return look_up(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    return "No site was found under example.invalid. Check the address for typing errors."


@pytest.mark.usefixtures("stage")
def test_a_host_that_does_not_exist_is_told_in_plain_words(editor, newsroom, unknown_name):
    form = paste(editor, newsroom, "https://example.invalid/feed").context["form"]
    assert form.errors["address"] == [unknown_name]
    answer = editor.post(at(newsroom, "making"), {"what": "https://example.invalid/news"})
    assert answer.context["notes"] == [f"{unknown_name} Paste its words instead."]
    for source_type in ("rss", "scraper"):
        settings = collect.SourceSettings(source_type, config={"url": "https://example.invalid/feed"})
        source = polled(collect.register(newsroom, settings))
        assert source.last_error["message"] == unknown_name


@pytest.mark.parametrize("kind", ["rss", "scraper", "youtube", "tiktok"])
def test_a_tile_shows_an_address_of_its_kind_and_takes_any(editor, newsroom, kind):
    page = at(newsroom, "source_add")
    assert f'href="?kind={kind}"' in editor.get(page).content.decode()
    answer = editor.get(f"{page}?kind={kind}")
    example = next(tile.example for tile in TILES if tile.kind == kind)
    shown = answer.content.decode()
    assert f'placeholder="{example}"' in shown
    assert re.findall(r'href="\?kind=(\w+)" aria-current="true"', shown) == [kind]
    # What the example shows is an address.
    (found,) = (
        editor.post(f"{page}?kind={kind}", {"address": "https://www.youtube.com/@trams"})
        .context["form"]
        .fields["kind"]
        .choices
    )
    assert "A channel on YouTube" in str(found[1])


def test_an_unknown_tile_is_none(editor, newsroom):
    assert editor.get(at(newsroom, "source_add") + "?kind=nonsense").context["chosen"] is None


# --- Before saving ---------------------------------------------------------------------------------------------------


def test_the_preview_says_what_the_first_poll_then_does(editor, newsroom, trams):
    answer = paste(editor, newsroom, trams.url_for("/feed.xml"))
    decisions = [str(one["decision"].label) for one in answer.context["entries"]]
    assert decisions == ["New"] * 5 + ["Older than the source"] * 2
    # Two formats of three credits together for each of the five.
    assert (answer.context["new"], answer.context["price"]) == (5, "15 credits")
    assert "Tram news" in answer.content.decode()
    assert (Source.everywhere.filter(is_push=False).count(), RawItem.everywhere.count()) == (0, 0)
    source = polled(saved(editor, newsroom, trams.url_for("/feed.xml")))
    assert sorted(SourceEntry.everywhere.filter(source=source).values_list("decision", flat=True)) == (
        ["before_first_poll"] * 2 + ["new"] * 5
    )


def test_choices_are_previewed_before_they_are_saved(editor, newsroom, trams):
    first = paste(editor, newsroom, trams.url_for("/feed.xml"))
    form = form_of(first, newest="2", engines=["Short Post"], preview="")
    answer = editor.post(at(newsroom, "source_choose"), form)
    assert (answer.context["new"], answer.context["price"]) == (2, "2 credits")
    assert Source.everywhere.filter(is_push=False).count() == 0


def test_everything_that_was_chosen_is_kept(editor, newsroom, trams):
    defaults = WorkspaceDefaults.everywhere.get(workspace=newsroom)
    source = saved(
        editor, newsroom, trams.url_for("/feed.xml"), name="Trams", engines=["Short Post"],
        persona=encode("per", defaults.persona_id), outlets=defaults.outlets, autopilot="on", first_poll="none",
        poll_interval_minutes="120", max_age_days="30", max_burst="7",
    )  # fmt: skip
    assert (source.name, source.type, source.config) == ("Trams", "rss", {"url": trams.url_for("/feed.xml")})
    assert (source.engines, source.persona_id, source.outlets) == (
        ["Short Post"],
        defaults.persona_id,
        defaults.outlets,
    )
    assert (source.autopilot, source.first_poll) == (True, "none")
    assert (source.poll_interval_minutes, source.max_age_days, source.max_burst) == (120, 30, 7)


def test_a_double_click_makes_one_source(editor, newsroom, trams):
    form = form_of(paste(editor, newsroom, trams.url_for("/feed.xml")), save="", once="x")
    editor.post(at(newsroom, "source_choose"), form)
    editor.post(at(newsroom, "source_choose"), form)
    assert Source.everywhere.filter(is_push=False).count() == 1


def test_what_was_found_can_t_be_made_up(editor, newsroom):
    for found in ("", "made:up", sign_readings([])[:-2]):
        answer = editor.post(at(newsroom, "source_choose"), {"found": found, "kind": "0", "save": ""})
        assert answer["Location"] == at(newsroom, "source_add")
    assert Source.everywhere.filter(is_push=False).count() == 0


def test_a_source_that_breaks_says_so_and_can_be_looked_at_otherwise(editor, newsroom, trams):
    form = form_of(paste(editor, newsroom, trams.url_for("/feed.xml")), preview="")
    trams.clear()
    trams.expect_request("/feed.xml").respond_with_data("", status=500)
    answer = editor.post(at(newsroom, "source_choose"), form)
    assert answer.status_code == 200
    assert answer.context["trouble"] != ""


def test_a_webhook_gets_an_address_to_copy(editor, newsroom, as_person, vera, settings):
    answer = editor.get(at(newsroom, "source_choose") + "?type=webhook")
    editor.post(at(newsroom, "source_choose"), form_of(answer, name="CMS", save="", once="x"))
    source = Source.everywhere.get(type="webhook", is_push=False)
    page = at(newsroom, "source_page", src=source.pk)
    inbound = f"{settings.PUBLIC_URL}/hooks/{source.inbound_token}"
    assert inbound in editor.get(page).content.decode()
    # It takes whatever is sent to it: who may change nothing isn't shown it.
    assert source.inbound_token not in as_person(vera).get(page).content.decode()


# --- The list and one source -----------------------------------------------------------------------------------------


def test_list_says_how_each_is_doing(editor, newsroom, trams):
    assert "No sources yet" in editor.get(at(newsroom, "sources_page")).content.decode()
    source = saved(editor, newsroom, trams.url_for("/feed.xml"))

    def row():
        (found,) = editor.get(at(newsroom, "sources_page")).context["rows"]
        return found["health"].label, found["next"] is not None

    assert row() == ("New", True)
    polled(source)
    assert row() == ("Active", True)
    editor.post(at(newsroom, "source_pause", src=source.pk), {"active": "no"})
    assert row() == ("Paused", False)
    editor.post(at(newsroom, "source_pause", src=source.pk), {"active": "yes"})
    trams.clear()
    trams.expect_request("/feed.xml").respond_with_data("", status=404)
    source.refresh_from_db()
    polled(source)
    label, has_next = row()
    assert (label, has_next) == ("Last poll failed", True)
    assert (
        escape(source.last_error["message"])
        in editor.get(at(newsroom, "source_page", src=source.pk)).content.decode()
    )


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ({"whitelisted_at": None}, "Paused until this workspace is approved."),
        (
            {"whitelisted_at": None, "delisted_at": NOON},
            "Paused because this workspace's access was revoked.",
        ),
        ({"deletes_at": NOON}, "Paused because this workspace will be deleted."),
    ],
)
def test_no_poll_is_promised_while_the_workspace_is_not_at_work(editor, newsroom, trams, state, sentence):
    source = saved(editor, newsroom, trams.url_for("/feed.xml"))
    page = at(newsroom, "source_page", src=source.pk)
    assert "within a minute" in editor.get(page).content.decode()
    type(newsroom).everywhere.filter(pk=newsroom.pk).update(**state)
    (row,) = editor.get(at(newsroom, "sources_page")).context["rows"]
    assert (row["health"].label, row["health"].sentence, row["next"]) == ("Waiting", sentence, None)
    shown = editor.get(page).content.decode()
    assert ("within a minute" in shown, "Poll now" in shown, escape(sentence) in shown) == (
        False,
        False,
        True,
    )


def test_no_entries_are_promised_of_a_paused_source(editor, newsroom, trams):
    source = saved(editor, newsroom, trams.url_for("/feed.xml"))
    editor.post(at(newsroom, "source_pause", src=source.pk), {"active": "no"})
    assert "within a minute" not in editor.get(at(newsroom, "source_page", src=source.pk)).content.decode()


def test_log_shows_decisions_and_admits_what_was_kept_back(editor, newsroom, trams):
    source = polled(saved(editor, newsroom, trams.url_for("/feed.xml"), newest="1"))
    page = at(newsroom, "source_page", src=source.pk)
    entries = editor.get(page).context["entries"]
    assert sorted(str(one["decision"].label) for one in entries) == ["New", *["Older than the source"] * 6]
    assert {str(one["by"]) for one in entries} == {"same ID"}
    assert [one["may_admit"] for one in entries].count(True) == 6
    only = editor.get(f"{page}?decision=new").context["entries"]
    assert [one["entry"].title for one in only] == ["Tram line 7 approved"]
    assert editor.get(f"{page}?decision=nonsense").context["chosen"] == ""
    kept = next(one for one in entries if one["entry"].title == "Tram line 3 approved")
    before = GeneratedItem.everywhere.count()
    answer = editor.post(at(newsroom, "source_admit", src=source.pk, raw=kept["raw"].pk))
    assert answer["Location"] == at(newsroom, "made", raw=kept["raw"].pk)
    kept["raw"].refresh_from_db()
    assert (kept["raw"].status, GeneratedItem.everywhere.count() - before) == ("queued", 2)


def test_entry_that_was_kept_back_can_be_made_after_it_changed(editor, newsroom, trams):
    source = polled(saved(editor, newsroom, trams.url_for("/feed.xml"), newest="1"))
    kept = RawItem.everywhere.filter(source=source, status="skipped").first()
    SourceEntry.everywhere.filter(raw_item=kept).update(decision="revised", code="revised")
    page = at(newsroom, "source_page", src=source.pk)
    (entry,) = editor.get(f"{page}?decision=revised").context["entries"]
    assert (entry["raw"], entry["may_admit"]) == (kept, True)
    SourceEntry.everywhere.filter(raw_item=kept).update(decision="over_burst")
    RawItem.everywhere.filter(pk=kept.pk).update(
        reason={"code": "nothing_to_make", "message": "", "stage": "push"}
    )
    (entry,) = editor.get(f"{page}?decision=over_burst").context["entries"]
    assert not entry["may_admit"]


def test_log_has_pages(editor, newsroom, httpserver):
    httpserver.expect_request("/feed.xml").respond_with_data(
        feed(range(60, 0, -1)), content_type="application/rss+xml"
    )
    source = polled(saved(editor, newsroom, httpserver.url_for("/feed.xml"), newest="1"))
    page = at(newsroom, "source_page", src=source.pk)
    first = editor.get(page)
    older = re.search(r'href="(\?before=[^"]+)"', first.content.decode())[1]
    second = editor.get(page + older)
    titles = [one["entry"].title for answer in (first, second) for one in answer.context["entries"]]
    assert (len(titles), len(set(titles)), second.context["older"]) == (60, 60, "")


def test_poll_now(editor, newsroom, trams):
    source = polled(saved(editor, newsroom, trams.url_for("/feed.xml")))
    before = source.last_polled_at
    editor.post(at(newsroom, "source_poll_now", src=source.pk))
    assert polled(source).last_polled_at > before
    editor.post(at(newsroom, "source_pause", src=source.pk), {"active": "no"})
    answer = editor.post(at(newsroom, "source_poll_now", src=source.pk), follow=True)
    assert "The source is paused" in answer.content.decode()


def test_settings_are_changed(editor, newsroom, trams):
    source = saved(editor, newsroom, trams.url_for("/feed.xml"))
    page = at(newsroom, "source_edit", src=source.pk)
    form = form_of(editor.get(page), name="Tram desk", engines=["Short Post"], max_age_days="14")
    editor.post(page, form)
    source.refresh_from_db()
    assert (source.name, source.engines, source.max_age_days) == ("Tram desk", ["Short Post"], 14)
    assert source.first_poll == {"newest": 5}


def test_formats_are_saved_on_the_source_s_own_page(editor, newsroom):
    source = Source.everywhere.create(
        workspace=newsroom, name="Trams", type="rss", engines=["Short Post", "Thread"]
    )
    page = at(newsroom, "source_page", src=source.pk)
    html = editor.get(page).content.decode()
    box = r'<input type="checkbox" name="engines" value="{}"[^>]*>'
    assert [" checked" in re.search(box.format(name), html)[0] for name in ("Thread", "Carousel")] == [
        True,
        False,
    ]
    # Each tick by itself sends nothing: a second one would be lost, and the focus with it.
    assert "data-submit" not in re.search(box.format("Thread"), html)[0]
    assert f"{page}#formats" in editor.get(at(newsroom, "sources_page")).content.decode()
    save = at(newsroom, "source_formats", src=source.pk)
    version = {"version": re.search(r'name="version" value="(\d+)"', html)[1]}
    answer = editor.post(save, {"engines": ["Carousel", "Thread"], **version})
    source.refresh_from_db()
    assert (answer["Location"], sorted(source.engines)) == (f"{page}#formats", ["Carousel", "Thread"])
    refusals = [
        ({"engines": ["Thread"], **version}, "Changed since you opened it."),
        ({"engines": ["Nonsense"]}, "Choose one of the formats that are listed."),
        ({}, "Choose at least one format."),
    ]
    for fields, sentence in refusals:
        assert sentence in editor.post(save, fields, follow=True).content.decode()
        source.refresh_from_db()
        assert sorted(source.engines) == ["Carousel", "Thread"]


def test_the_workspace_s_defaults_are_shown_on_the_page_of_a_source_without_formats(
    editor, newsroom, as_person, vera
):
    source = Source.everywhere.create(workspace=newsroom, name="Trams", type="rss")
    page = at(newsroom, "source_page", src=source.pk)
    html = editor.get(page).content.decode()
    box = r'<input type="checkbox" name="engines" value="{}"[^>]*>'
    defaults = WorkspaceDefaults.everywhere.get(workspace=newsroom).engines
    assert "The workspace's defaults" in html
    assert all(" checked" in re.search(box.format(name), html)[0] for name in defaults)
    viewed = as_person(vera).get(page).content.decode()
    assert (", ".join(defaults) in viewed, 'name="engines"' in viewed) == (True, False)


def test_a_format_that_is_not_available_is_listed_and_no_save_drops_it(editor, newsroom, settings):
    source = Source.everywhere.create(
        workspace=newsroom, name="Trams", type="rss", engines=["Short Post", "Thread"]
    )
    settings.DISABLED_KINDS = frozenset({"engines/short_post"})
    page = at(newsroom, "source_page", src=source.pk)
    html = editor.get(page).content.decode()
    assert re.search(
        r'value="Short Post"[^>]* checked>\s*<span>Short Post<br><span[^>]*>Not available<', html
    )
    version = {"version": str(source.version)}
    kept = {"engines": ["Carousel", "Short Post"], **version}
    refused = editor.post(at(newsroom, "source_formats", src=source.pk), kept, follow=True)
    assert "The operator has taken Short Post out of this service." in refused.content.decode()
    source.refresh_from_db()
    assert source.engines == ["Short Post", "Thread"]
    editor.post(at(newsroom, "source_formats", src=source.pk), {"engines": ["Carousel"], **version})
    source.refresh_from_db()
    assert source.engines == ["Carousel"]


def test_deleting_is_taken_back(editor, newsroom, trams):
    source = polled(saved(editor, newsroom, trams.url_for("/feed.xml")))
    answer = editor.post(at(newsroom, "source_delete", src=source.pk), follow=True)
    assert answer.context["rows"] == []
    assert editor.get(at(newsroom, "source_page", src=source.pk)).status_code == 404
    assert at(newsroom, "source_restore", src=source.pk) in answer.content.decode()
    editor.post(at(newsroom, "source_restore", src=source.pk))
    count = RawItem.everywhere.count()
    source.refresh_from_db()
    assert (source.deleted_at, source.status) == (None, "active")
    # It remembers what it has seen.
    polled(source)
    assert RawItem.everywhere.count() == count
    # To restore what is there changes nothing.
    version = source.version
    collect.restore(source, workspace=newsroom, now=source.created_at)
    source.refresh_from_db()
    assert source.version == version


def test_restoring_past_the_plan_is_refused(editor, newsroom, trams):
    source = saved(editor, newsroom, trams.url_for("/feed.xml"))
    editor.post(at(newsroom, "source_delete", src=source.pk))
    newsroom.plan.active_sources_most = 0
    newsroom.plan.save(update_fields=["active_sources_most"])
    answer = editor.post(at(newsroom, "source_restore", src=source.pk), follow=True)
    assert "The plan has 0 active sources" in answer.content.decode()
    source.refresh_from_db()
    assert source.deleted_at is not None


def test_nothing_of_another_workspace_is_there(editor, newsroom, charlie, as_person, trams):
    theirs = workspaces.memberships_of(charlie)[0].workspace
    source = saved(as_person(charlie), theirs, trams.url_for("/feed.xml"), name="Theirs")
    raw = RawItem.everywhere.create(workspace=theirs, source=source, dedup_key="h:x", content_hash="x")
    for name in ("source_page", "source_edit"):
        assert editor.get(at(newsroom, name, src=source.pk)).status_code == 404
    for name in ("source_pause", "source_poll_now", "source_delete", "source_restore"):
        assert editor.post(at(newsroom, name, src=source.pk)).status_code == 404
    mine = saved(editor, newsroom, trams.url_for("/feed.xml"))
    assert editor.post(at(newsroom, "source_admit", src=mine.pk, raw=raw.pk)).status_code == 404
    assert "Theirs" not in editor.get(at(newsroom, "sources_page")).content.decode()


def test_the_workspace_s_own_push_source_is_no_page(editor, newsroom):
    push = Source.everywhere.get(workspace=newsroom, is_push=True, test=False)
    assert editor.get(at(newsroom, "source_page", src=push.pk)).status_code == 404
