"""Items by page: the list and its filters, one item as it will look, what it rests on, and how it was judged."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from urllib.parse import urljoin

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts import workspaces
from accounts.access import tokens
from config.core.ids import encode
from pipeline.models import (
    Asset,
    Attempt,
    GeneratedItem,
    HoldReason,
    Persona,
    Publication,
    RawBody,
    RawItem,
    Revision,
    WorkspaceDefaults,
)
from pipeline.platforms.base import Sent
from pipeline.publish import workspace_hold
from pipeline.publish.late_answers import keep_late_answer
from tests.factories import TokenFactory
from tests.pages.answers import at, text_of
from tests.pipeline.steps import TEXT, make_items, make_stage, promise, push_raw, reread, send

pytestmark = pytest.mark.usefixtures("own_media")


def another(workspace, title):
    """An item of another raw item."""
    body = f"{title} was in the news on Monday. " * 6
    return make_items(workspace, title=title, body=body, url=f"https://news.example/{title}")[0]


def page_of(client, item):
    answer = client.get(at(item.workspace, "item_page", gen=item.pk))
    assert answer.status_code == 200
    return answer


def words_in(answer):
    """What a person reads there."""
    return " ".join(re.sub(r"<[^>]+>", " ", text_of(answer)).split())


def change(item, **values):
    GeneratedItem.everywhere.filter(pk=item.pk).update(**values)
    return GeneratedItem.everywhere.select_related("workspace").get(pk=item.pk)


def picture(item, name="card.jpg", **values):
    given = {
        "workspace_id": item.workspace_id,
        "role": "picture",
        "kind": "image",
        "path": f"x/{name}",
        "mime_type": "image/jpeg",
        "bytes": 1200,
        "sha256": "0" * 64,
        "width": 1080,
        "height": 1350,
        "alt_text": "A tram on a bridge",
    }
    return Asset.everywhere.create(item=item, name=name, **{**given, **values})


def listed(client, workspace, query=""):
    answer = client.get(at(workspace, "items_page") + query)
    assert answer.status_code == 200
    return [row["id"] for row in answer.context["rows"]]


# --- The list --------------------------------------------------------------------------------------------------------


def test_a_fresh_workspace_is_told_how_something_is_made(editor, newsroom, vera, as_person):
    page = text_of(editor.get(at(newsroom, "items_page")))
    assert "No items yet" in page
    empty = page.split('class="empty"')[1]
    assert [at(newsroom, name) in empty for name in ("making", "source_add")] == [True, True]
    seen = text_of(as_person(vera).get(at(newsroom, "items_page"))).split('class="empty"')[1]
    assert [at(newsroom, name) in seen for name in ("making", "source_add")] == [False, False]


def test_the_list_shows_the_newest_first_and_none_of_others(editor, newsroom, posts, charlie):
    first, second = (
        make_items(newsroom)[0],
        another(newsroom, "Ferry"),
    )
    tried = make_items(newsroom, test=True, title="Tried")[0]
    gone = another(newsroom, "Gone")
    change(gone, deleted_at=timezone.now())
    elsewhere = charlie.memberships.get().workspace
    workspaces.whitelist(elsewhere, "op")
    theirs = make_items(elsewhere, title="Theirs")[0]
    assert tried.test is True
    assert theirs.pk not in {first.pk, second.pk}
    assert listed(editor, newsroom) == [second.pk, first.pk]


@pytest.mark.parametrize(
    ("changes", "query"),
    [
        ({"bucket": "blog"}, "?bucket=blog"),
        ({"status": "rejected"}, "?status=rejected"),
        ({"engine_output": "Persona Tweet"}, "?engine=Persona+Tweet"),
        ({"held": "source_changed"}, "?held=yes"),
        ({"flagged": "source_changed"}, "?held=flagged"),
    ],
)
def test_it_is_narrowed(editor, newsroom, posts, changes, query):
    other, wanted = (
        make_items(newsroom)[0],
        another(newsroom, "Ferry"),
    )
    assert listed(editor, newsroom, query) == []
    change(wanted, **changes)
    assert listed(editor, newsroom) == [wanted.pk, other.pk]
    assert listed(editor, newsroom, query) == [wanted.pk]


def test_it_is_narrowed_to_a_source_and_a_persona(editor, newsroom, posts):
    other, wanted = (
        make_items(newsroom)[0],
        another(newsroom, "Ferry"),
    )
    persona = Persona.everywhere.create(workspace=newsroom, name="Harbour")
    source = reread(WorkspaceDefaults.everywhere.get(workspace=newsroom).test_push_source)
    change(wanted, persona=persona, source=source)
    assert listed(editor, newsroom, f"?persona={encode('per', persona.pk)}") == [wanted.pk]
    assert listed(editor, newsroom, f"?source={encode('src', source.pk)}") == [wanted.pk]
    assert listed(editor, newsroom, f"?source={encode('src', other.source_id)}") == [other.pk]


def test_ready_items_are_narrowed_to_those_to_review_and_approved_ones(editor, newsroom, posts):
    waiting, approved = make_items(newsroom)[0], another(newsroom, "Ferry")
    change(approved, approved_at=timezone.now(), approved_by="bob", approved_revision=1)
    assert listed(editor, newsroom, "?status=to_review") == [waiting.pk]
    assert listed(editor, newsroom, "?status=approved") == [approved.pk]
    # Each ready item is found by its badge alone, whatever it is held for.
    badges = {"to_review": "To review", "on_hold": "On hold", "approved": "Approved"}
    for held in ("", *HoldReason.values):
        change(waiting, held=held)
        change(approved, held=held)
        for item in (waiting, approved):
            found = [name for name in badges if item.pk in listed(editor, newsroom, f"?status={name}")]
            rows = editor.get(f"{at(newsroom, 'items_page')}?status=ready").context["rows"]
            (label,) = [str(row["label"]) for row in rows if row["id"] == item.pk]
            assert [badges[name] for name in found] == [label], held
    change(waiting, held="")
    change(approved, held="")
    # A view that was saved before has both.
    assert listed(editor, newsroom, "?status=ready") == [approved.pk, waiting.pk]
    statuses = [
        name
        for name, _label in editor.get(at(newsroom, "items_page")).context["filter"].fields["status"].choices
    ]
    assert "ready" not in statuses


def test_a_filter_that_there_is_not_says_so(editor, newsroom, item):
    answer = editor.get(at(newsroom, "items_page") + "?status=lost")
    assert (answer.status_code, answer.context["rows"], "Unknown filter" in text_of(answer)) == (
        200,
        [],
        True,
    )
    assert editor.get(at(newsroom, "items_page") + "?before=nothing").status_code == 404


def test_a_search_is_the_apis_and_keeps_the_filters(editor, newsroom, item, monkeypatch):
    from pipeline.pages.items import listing

    monkeypatch.setattr(listing, "ROWS", 2)
    other = workspaces.create("Others")
    workspaces.whitelist(other, "operator@example.test")
    another(other, "Zeppelin")
    made = [another(newsroom, title).pk for title in ("Zeppelin", "Zeppelin news", "Zeppelins", "Balloon")]
    first = editor.get(at(newsroom, "items_page") + "?q=zepp&bucket=text")
    assert "No items match" not in text_of(first)
    second = editor.get(at(newsroom, "items_page") + f"?{first.context['older']}")
    pages = [[row["id"] for row in answer.context["rows"]] for answer in (first, second)]
    assert sorted(pages[0] + pages[1]) == sorted(made[:3])
    assert (len(pages[0]), second.context["older"]) == (2, "")
    assert "No items match" in text_of(editor.get(at(newsroom, "items_page") + "?q=zepp&bucket=video"))
    assert "Unknown filter" in text_of(editor.get(at(newsroom, "items_page") + "?q=" + "a" * 201))


def test_it_is_read_page_by_page(editor, newsroom, item, monkeypatch):
    from pipeline.pages.items import listing

    monkeypatch.setattr(listing, "ROWS", 2)
    made = [item.pk] + [another(newsroom, f"News {n}").pk for n in range(4)]
    first = editor.get(at(newsroom, "items_page") + "?bucket=text")
    second = editor.get(at(newsroom, "items_page") + f"?{first.context['older']}")
    third = editor.get(at(newsroom, "items_page") + f"?{second.context['older']}")
    pages = [[row["id"] for row in answer.context["rows"]] for answer in (first, second, third)]
    newest_first = made[::-1]
    assert pages == [newest_first[:2], newest_first[2:4], newest_first[4:]]
    assert (third.context["older"], third.context["newest"]) == ("", "bucket=text")


def test_the_list_asks_as_much_for_many_as_for_one(editor, newsroom, item):
    address = at(newsroom, "items_page")
    editor.get(address)
    with CaptureQueriesContext(connection) as one:
        editor.get(address)
    for number in range(4):
        more = another(newsroom, f"N {number}")
        picture(more, name=f"{number}.jpg")
    with CaptureQueriesContext(connection) as many:
        editor.get(address)
    assert len(many) == len(one)


# --- One item --------------------------------------------------------------------------------------------------------


def test_an_item_is_shown_with_who_made_it_and_of_what(editor, newsroom, item):
    answer = page_of(editor, item)
    words = words_in(answer)
    assert "Without AI · from the source" in words
    assert item.title in words
    links = re.findall(r'href="([^"]+)"', text_of(answer))
    assert at(newsroom, "made", raw=item.raw_item_id) in links
    assert at(newsroom, "persona", per=item.persona_id) in links
    assert [
        call in links
        for call in (at(newsroom, "item_edit", gen=item.pk), at(newsroom, "item_publish", gen=item.pk))
    ] == [True, True]


def test_what_a_model_wrote_says_so_with_its_cost(editor, item):
    made = {
        "provider": "anthropic", "model": "claude-x", "offline": False, "prompt_version": "v7",
        "input_tokens": 5120, "output_tokens": 318, "cost_usd": "0.004200", "credits": 1,
    }  # fmt: skip
    change(item, generator=made)
    words = words_in(page_of(editor, item))
    assert "AI: claude-x" in words
    assert "Labelled as AI where supported" in words
    assert ["5120 in · 318 out" in words, "$ 0.0042" in words] == [True, True]


def test_a_viewer_sees_all_and_is_offered_nothing(vera, as_person, newsroom, item):
    stage = make_stage(newsroom, "reject")
    publication = send(promise(item, stage))
    page = text_of(page_of(as_person(vera), item))
    assert item.title in page
    acts = ["approve", "reject", "edit", "publish", "regenerate", "choose", "cancel", "back", "retry"]
    offered = [at(newsroom, f"item_{act}", gen=item.pk) for act in acts]
    offered += [
        at(newsroom, f"publication_{act}", pub=publication.pk) for act in ("retry", "reconcile", "remove")
    ]
    assert [address for address in offered if f'"{address}"' in page] == []


def test_what_is_anothers_a_tests_or_gone_is_not_there(editor, newsroom, posts, charlie, as_person):
    mine = make_items(newsroom)[0]
    tried = make_items(newsroom, test=True)[0]
    gone = another(newsroom, "Gone")
    change(gone, deleted_at=timezone.now())
    there = charlie.memberships.get().workspace
    theirs = at(there, "item_page", gen=mine.pk)
    assert as_person(charlie).get(theirs).status_code == 404
    assert as_person(charlie).get(at(newsroom, "item_page", gen=mine.pk)).status_code == 404
    codes = [editor.get(at(newsroom, "item_page", gen=one.pk)).status_code for one in (mine, tried, gone)]
    assert codes == [200, 404, 404]


def test_a_failed_item_says_why_and_offers_to_try_again(editor, newsroom, item):
    change(
        item, status="failed", error={"code": "x", "message": "The source has no sentence.", "stage": "draft"}
    )
    answer = page_of(editor, item)
    assert "The source has no sentence." in words_in(answer)
    assert f'action="{at(newsroom, "item_retry", gen=item.pk)}"' in text_of(answer)


def test_a_rejected_item_says_by_whom_and_why(editor, newsroom, item):
    change(
        item,
        status="rejected",
        rejection={"code": "by_person", "message": "Old news.", "by": "vera", "at": ""},
    )
    answer = page_of(editor, item)
    assert ["Rejected by vera." in words_in(answer), "Old news." in words_in(answer)] == [True, True]
    assert f'action="{at(newsroom, "item_restore", gen=item.pk)}"' in text_of(answer)


def test_checks_are_grouped_in_words(editor, item):
    change(
        item,
        checks=[
            {"code": "numbers", "outcome": "failed", "message": "These numbers aren't in the source: 41."},
            {"code": "names", "outcome": "warning", "message": "Vera Lind isn't named in the source."},
            {"code": "link_origin", "outcome": "passed", "message": "Every link is allowed."},
            {"code": "of_a_new_kind", "outcome": "passed", "message": "Something new."},
        ],
    )
    checks = page_of(editor, item).context["checks"]
    assert [[one.label for one in group] for group in (checks.failed, checks.warning, checks.passed)] == [
        ["Numbers"],
        ["Names"],
        ["Links", "Of a new kind"],
    ]


def test_the_words_of_a_source_are_nobodys_markup(editor, item):
    change(
        item,
        title="<b>Bold</b>",
        body="<script>alert(1)</script>",
        content={"parts": ["<script>alert(1)</script>"]},
    )
    page = text_of(page_of(editor, item))
    assert ["<script>alert" in page, "<b>Bold" in page, "&lt;script&gt;alert(1)" in page] == [
        False,
        False,
        True,
    ]


def test_an_article_is_sanitised_and_its_headings_stand_below_the_pages(editor, item):
    body = (
        "<h1>Tram</h1><p onclick='x()'>It <em>runs</em>.</p><script>alert(1)</script>"
        "<img src='https://spy.example/1.gif'><a href='javascript:x()'>here</a>"
    )
    content = {"slug": "tram", "meta_description": "A line.", "tags": ["rail", "city"]}
    change(item, bucket="blog", body=body, body_format="html", content=content)
    answer = page_of(editor, item)
    html = str(answer.context["look"].html)
    assert "<h4>Tram</h4><p>It <em>runs</em>.</p>" in html
    assert [bad in html for bad in ("onclick", "<script", "<img", "javascript:")] == [False] * 4
    assert answer.context["look"].facts == (
        ("Address", "tram"),
        ("Description", "A line."),
        ("Tags", "rail, city"),
    )


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("<h1>a</h1><h2>b</h2><h1>c</h1>", "<h4>a</h4><h5>b</h5><h4>c</h4>"),
        ("<h3>a</h3><h1>b</h1><h4>c</h4>", "<h4>a</h4><h4>b</h4><h5>c</h5>"),
        ("<h2>a</h2><h5>b</h5><h6>c</h6>", "<h4>a</h4><h5>b</h5><h6>c</h6>"),
    ],
)
def test_no_level_of_an_articles_headings_is_left_out(editor, item, written, shown):
    change(item, bucket="blog", body=written, body_format="html", content={})
    assert str(page_of(editor, item).context["look"].html) == shown


def test_a_letter_shows_what_its_readers_see_first(editor, item):
    content = {"subject": "This week", "preheader": "Trams and boats", "sections": []}
    change(item, bucket="newsletter", body="## Trams\n\nThey run.", body_format="markdown", content=content)
    look = page_of(editor, item).context["look"]
    assert (look.subject, look.preheader) == ("This week", "Trams and boats")
    assert "<h3>Trams</h3>" in look.html


def test_a_video_has_a_player_with_captions_and_a_strip_of_frames(editor, item):
    video = picture(item, "short.mp4", role="video", kind="video", mime_type="video/mp4", duration=30.0)
    captions = picture(
        item, "captions.de.vtt", role="captions", kind="text", mime_type="text/vtt", width=None
    )
    poster = picture(item, "thumb.jpg", role="thumbnail")
    frames = [picture(item, f"frame-{n}.jpg", role="frame", position=n, alt_text="") for n in range(3)]
    change(
        item, bucket="video", content={"caption": "Trams at six.", "script": "Trams run.", "tags": ["rail"]}
    )
    answer = page_of(editor, item)
    page, look = text_of(answer), answer.context["look"]
    assert f'<source src="/media/{video.secret}/short.mp4" type="video/mp4">' in page
    assert f'poster="/media/{poster.secret}/thumb.jpg"' in page
    assert f'<track kind="captions" src="/media/{captions.secret}/captions.de.vtt" srclang="de"' in page
    assert [one.id for one in look.frames] == [one.pk for one in frames]
    assert (look.pictures, look.script, str(look.caption)) == ((), "Trams run.", "Trams at six.")


def test_pictures_stand_in_their_order_with_their_alt_texts(editor, item):
    second, first = picture(item, "b.jpg", position=1, alt_text=""), picture(item, "a.jpg", position=0)
    picture(item, "old.jpg", revoked_at=timezone.now())
    change(item, bucket="image")
    answer = page_of(editor, item)
    assert [one.id for one in answer.context["look"].pictures] == [first.pk, second.pk]
    assert ['alt="A tram on a bridge"' in text_of(answer), "No alt text" in words_in(answer)] == [
        True,
        True,
    ]


def test_other_sizes_and_a_document_stand_apart(editor, item):
    first, other = picture(item, "a.jpg"), picture(item, "b.jpg", role="alternative", position=1)
    pdf = picture(item, "a.pdf", role="document", kind="document", mime_type="application/pdf", width=None)
    change(item, bucket="image")
    look = page_of(editor, item).context["look"]
    assert ([one.id for one in look.pictures], [one.id for one in look.other_sizes]) == (
        [first.pk],
        [other.pk],
    )
    assert look.document.id == pdf.pk


def test_each_outlet_counts_as_its_platform_does(editor, newsroom, item):
    stage = make_stage(newsroom)
    change(item, outlets=[encode("out", stage.pk)])
    (fit,) = page_of(editor, item).context["fits"]
    assert (fit.outlet, fit.count, fit.problems) == (stage, len(item.body), ())


def test_an_item_under_way_looks_again_and_then_opens_anew(editor, newsroom, posts):
    raw = push_raw(newsroom).raw_item
    item = GeneratedItem.everywhere.select_related("workspace").get(raw_item=raw)
    page = text_of(page_of(editor, item))
    assert 'id="progress" hx-get=' in page
    assert "Queued. Updates automatically." in page
    change(item, status="ready")
    asked = editor.get(
        at(newsroom, "item_page", gen=item.pk), headers={"HX-Request": "true", "HX-Target": "progress"}
    )
    assert (asked.content, asked["HX-Refresh"]) == (b"", "true")


def test_what_is_on_its_way_to_an_outlet_looks_again(editor, newsroom, item):
    stage = make_stage(newsroom)
    row = promise(item, stage)
    assert "Publishing to Stage." in words_in(page_of(editor, item))
    send(row)
    assert page_of(editor, item).context["progress"] == ""
    assert "View post" in words_in(page_of(editor, item))


def test_the_badge_follows_a_post_that_waits_for_its_next_attempt(editor, newsroom, item):
    row = promise(item, make_stage(newsroom))
    retry_at = timezone.now() + timedelta(minutes=5)
    Publication.everywhere.filter(pk=row.pk).update(status="publishing", next_attempt_at=retry_at)
    change(item, status="publishing")
    html = page_of(editor, item).content.decode()
    assert ("Publishing to Stage." in html, 'hx-trigger="every 10s"' in html) == (False, True)
    poll = unescape(re.search(r'id="progress" hx-get="([^"]+)"', html)[1])
    part = {"HX-Request": "true", "HX-Target": "progress"}
    assert editor.get(poll, headers=part).status_code == 204
    # It is published elsewhere, while another one still waits: the page is loaded anew.
    other = promise(item, make_stage(newsroom, name="Other"))
    Publication.everywhere.filter(pk=other.pk).update(status="published", published_at=timezone.now())
    assert editor.get(poll, headers=part)["HX-Refresh"] == "true"


def test_a_post_that_is_handed_over_to_a_person_loads_the_page_again(editor, newsroom, item):
    row = promise(item, make_stage(newsroom))
    other = promise(item, make_stage(newsroom, name="Other"))
    Publication.everywhere.filter(pk__in=[row.pk, other.pk]).update(status="publishing")
    change(item, status="publishing")
    html = page_of(editor, item).content.decode()
    poll = unescape(re.search(r'id="progress" hx-get="([^"]+)"', html)[1])
    part = {"HX-Request": "true", "HX-Target": "progress"}
    assert editor.get(poll, headers=part).status_code == 204
    # Its status stays, and its badge changes.
    Publication.everywhere.filter(pk=other.pk).update(step="by_hand")
    assert editor.get(poll, headers=part)["HX-Refresh"] == "true"


def test_a_poll_takes_no_state_from_the_page_s_own_address(editor, newsroom, item):
    change(item, status="generating")
    html = editor.get(at(newsroom, "item_page", gen=item.pk) + "?state=x&poll_state=x").content.decode()
    poll = unescape(re.search(r'id="progress" hx-get="([^"]+)"', html)[1])
    answer = editor.get(poll, headers={"HX-Request": "true", "HX-Target": "progress"})
    assert (answer.status_code, answer.headers.get("HX-Refresh")) == (204, None)


def poll_of(answer):
    """The address that the list polls, or none if it doesn't poll."""
    found = re.search(r'id="moving" hidden hx-get="([^"]+)"', text_of(answer))
    return unescape(found[1]) if found else None


def test_statuses_of_the_list_follow_what_is_under_way(editor, newsroom, item):
    still = another(newsroom, "Ferry")
    row = promise(item, make_stage(newsroom))
    page = at(newsroom, "items_page")
    assert poll_of(editor.get(page)) is None
    part = {"HX-Request": "true", "HX-Target": "moving"}
    change(item, status="generating")
    poll = poll_of(editor.get(page))
    # What hasn't changed is swapped for nothing, so that the focus stays.
    assert editor.get(poll, headers=part).status_code == 204
    change(item, status="publishing")
    Publication.everywhere.filter(pk=row.pk).update(status="publishing")
    moving = editor.get(poll, headers=part)
    assert f'id="status-{item.pk.hex}" hx-swap-oob="true"' in text_of(moving)
    assert ("Publishing" in text_of(moving), still.pk.hex in text_of(moving)) == (True, False)
    assert editor.get(poll_of(moving), headers=part).status_code == 204
    change(item, status="published", published_at=timezone.now())
    done = editor.get(poll_of(moving), headers=part)
    # All that the row shows has changed, not the badge alone.
    assert f'<tr id="row-{item.pk.hex}" hx-swap-oob="true">' in text_of(done)
    assert (poll_of(done), "Published" in text_of(done), ">published<" in text_of(done)) == (None, True, True)


def test_a_row_that_was_made_meanwhile_is_the_one_that_a_reload_shows(editor, newsroom, item):
    page = at(newsroom, "items_page")
    change(item, status="generating")
    poll = poll_of(editor.get(page))
    change(item, status="ready")
    done = text_of(editor.get(poll, headers={"HX-Request": "true", "HX-Target": "moving"}))
    (swapped,) = re.findall(r"<tr id=.*?</tr>", done, re.DOTALL)
    (reloaded,) = re.findall(r"<tr id=.*?</tr>", text_of(editor.get(page)), re.DOTALL)
    assert swapped.replace(' hx-swap-oob="true"', "") == reloaded
    assert 'form="bulk"' in swapped


@pytest.mark.parametrize(
    "values",
    [
        {"status": "publishing", "step": "by_hand"},
        {"status": "unknown"},
        {"status": "publishing", "next_attempt_at": timezone.now() + timedelta(days=1)},
    ],
)
def test_the_list_polls_for_nothing_that_waits(editor, newsroom, item, values):
    row = promise(item, make_stage(newsroom))
    change(item, status="publishing")
    Publication.everywhere.filter(pk=row.pk).update(status="publishing", next_attempt_at=None)
    assert poll_of(editor.get(at(newsroom, "items_page"))) is not None
    Publication.everywhere.filter(pk=row.pk).update(**values)
    assert poll_of(editor.get(at(newsroom, "items_page"))) is None


def test_statuses_of_another_workspace_are_not_told(editor, newsroom, posts):
    other = workspaces.create("Others")
    workspaces.whitelist(other, "operator@example.test")
    theirs = change(another(other, "Zeppelin"), status="publishing")
    address = f"{at(newsroom, 'items_page')}?moving={encode('gen', theirs.pk)},nonsense"
    answer = editor.get(address, headers={"HX-Request": "true", "HX-Target": "moving"})
    assert (answer.status_code, text_of(answer).strip()) == (200, "")


def test_what_a_platform_said_too_late_stands_with_its_call_and_both_ids_above(editor, newsroom, item):
    publication = send(promise(item, make_stage(newsroom)))
    first = Attempt.everywhere.get(publication=publication)
    again = Attempt(workspace=newsroom, publication=publication, number=2, revision=1)
    again.save(force_insert=True)
    with transaction.atomic():
        row = Publication.everywhere.select_related("outlet").get(pk=publication.pk)
        sent = Sent("late-7", "https://platform.example/late-7")
        keep_late_answer(row, reread(item), first, sent, timezone.now())
    told = text_of(page_of(editor, item))
    assert f"It may have been published twice, as {publication.external_id} and as late-7:" in told
    assert "delete one (https://platform.example/late-7)." in told
    assert "The platform confirmed it late, " in told
    assert 'href="https://platform.example/late-7"' in page_of(editor, item).content.decode()


def test_what_waits_for_its_time_doesnt_look_again(editor, newsroom, item):
    promise(item, make_stage(newsroom), publish_at=timezone.now() + timedelta(hours=3))
    assert page_of(editor, item).context["progress"] == ""


def test_it_asks_as_much_for_many_claims_and_revisions_as_for_one(editor, newsroom, item):
    page_of(editor, item)
    with CaptureQueriesContext(connection) as one:
        page_of(editor, item)
    for number in range(2, 6):
        Revision.everywhere.create(
            workspace=newsroom, item=item, number=number, body="x", body_format="text", made_by="bob"
        )
        picture(item, f"{number}.jpg")
    change(item, claims=item.claims * 4)
    with CaptureQueriesContext(connection) as many:
        page_of(editor, item)
    assert len(many) == len(one)


# --- What it rests on ------------------------------------------------------------------------------------------------


def claim_map(editor, item):
    return page_of(editor, item).context["map"]


def test_each_claim_leads_to_its_sentence_of_the_source(editor, item):
    (claim,) = item.claims
    answer = page_of(editor, item)
    seen = answer.context["map"]
    assert [(one.number, one.quote, one.is_placed) for one in seen.claims] == [(1, claim["quote"], True)]
    marked = [piece for piece in seen.pieces if piece.numbers]
    assert [(piece.text, piece.numbers, piece.starting_here) for piece in marked] == [
        (claim["quote"], (1,), (1,))
    ]
    assert "".join(piece.text for piece in seen.pieces) == TEXT
    page = text_of(answer)
    assert ['href="#quote-1"' in page, 'id="quote-1"' in page, 'data-claim="1"' in page] == [True, True, True]


def test_claims_that_rest_on_the_same_words_share_them(editor, item):
    start, end = TEXT.index("Construction"), TEXT.index("people.") + len("people.")
    whole = {"text": "The depot", "quote": TEXT[start:end], "start": start, "end": end}
    part_at = TEXT.index("about 340 people")
    part = {"text": "340 people", "quote": "about 340 people", "start": part_at, "end": part_at + 16}
    change(item, claims=[whole, part])
    marked = [
        (piece.text, piece.numbers, piece.starting_here)
        for piece in claim_map(editor, item).pieces
        if piece.numbers
    ]
    assert marked == [
        (TEXT[start:part_at], (1,), (1,)),
        ("about 340 people", (1, 2), (2,)),
        (TEXT[part_at + 16 : end], (1,), ()),
    ]


def test_a_long_source_is_shown_around_its_claims(editor, item):
    filler = "Words of no interest. " * 2000
    body = f"{filler}{TEXT}\n{filler}"
    RawBody.everywhere.filter(raw_item=item.raw_item_id).update(body=body)
    start = filler.__len__() + TEXT.index("Critics")
    quote = "Critics warned that rents along the route have already risen"
    change(item, claims=[{"text": "Rents", "quote": quote, "start": start, "end": start + len(quote)}])
    pieces = claim_map(editor, item).pieces
    assert [piece.is_gap for piece in pieces] == [True, False, False, False, True]
    assert [piece.text for piece in pieces if piece.numbers] == [quote]
    assert sum(len(piece.text) for piece in pieces) < 1500


def test_a_number_that_follows_from_others_says_how(editor, item):
    change(item, claims=[{**item.claims[0], "derived": "43 % = 92 / 214"}])
    assert "Calculated: 43 % = 92 / 214" in words_in(page_of(editor, item))


def test_a_quote_that_is_not_there_is_told(editor, item):
    change(item, claims=[{"text": "Rents fell", "quote": "Rents fell by half.", "start": 3, "end": 22}])
    answer = page_of(editor, item)
    assert [one.is_placed for one in answer.context["map"].claims] == [False]
    assert "Rents fell by half." in words_in(answer)


def test_without_the_source_the_quotes_stay(editor, item):
    RawItem.everywhere.filter(pk=item.raw_item_id).update(deleted_at=timezone.now())
    seen = claim_map(editor, item)
    assert (seen.pieces, [one.quote for one in seen.claims]) == ((), [item.claims[0]["quote"]])


# --- Where it is found -----------------------------------------------------------------------------------------------


def test_what_lists_an_item_leads_to_its_page(editor, newsroom, item):
    stage = make_stage(newsroom, "reject")
    failed = another(newsroom, "Ferry")
    send(promise(failed, stage))
    waits = another(newsroom, "Boats")
    promise(waits, stage, publish_at=timezone.now() + timedelta(hours=3))
    broken = change(another(newsroom, "Bridge"), status="failed", error={"code": "x", "message": "No."})
    home = text_of(editor.get(at(newsroom, "home")))
    links = {urljoin(at(newsroom, "home"), link) for link in re.findall(r'href="([^"]+)"', home)}
    pages = {name: at(one.workspace, "item_page", gen=one.pk) for name, one in
             (("review", item), ("failed", failed), ("next", waits), ("broken", broken))}  # fmt: skip
    assert {name: page in links for name, page in pages.items()} == dict.fromkeys(pages, True)
    seen = text_of(editor.get(at(newsroom, "made", raw=item.raw_item_id)))
    assert f'href="{pages["review"]}"' in seen
    outlet = text_of(editor.get(at(newsroom, "outlet_page", out=stage.pk)))
    assert [f'href="{pages[name]}"' in outlet for name in ("failed", "next")] == [True, True]
    workspace_hold.hold_workspace(newsroom, reason="A storm.", by="alice@example.test")
    assert f'href="{pages["next"]}"' in text_of(editor.get(at(newsroom, "queues_release")))


def test_an_outlet_leads_to_no_item_that_has_no_page(editor, newsroom, item):
    stage = make_stage(newsroom)
    promise(item, stage, publish_at=timezone.now() + timedelta(hours=3))
    change(item, deleted_at=timezone.now())
    outlet = text_of(editor.get(at(newsroom, "outlet_page", out=stage.pk)))
    assert at(newsroom, "item_page", gen=item.pk) not in outlet


@pytest.mark.parametrize(
    ("progress", "error", "said"),
    [
        (0, None, "Rendering soon"),
        (40, None, "Rendering: 40 %"),
        (
            0,
            {"code": "no_space", "message": "There is too little free space to make a film."},
            "There is too little free space to make a film.",
        ),
    ],
)
def test_a_film_in_the_making_says_how_far_it_is_and_what_it_waits_for(
    editor, newsroom, item, progress, error, said
):
    run = item.generation
    run.stage, run.progress, run.error = "render", progress, error
    run.save()
    GeneratedItem.everywhere.filter(pk=item.pk).update(status="generating", bucket="video")
    page = editor.get(at(newsroom, "item_page", gen=item.pk))
    assert said in page.content.decode()
    assert ("Rendering" in page.content.decode()) is ("Rendering" in said)


def test_the_history_names_who_it_was(editor, newsroom, item):
    key = TokenFactory(workspace=newsroom, name="Import")
    Revision.everywhere.create(
        workspace=newsroom, item=item, number=2, body="x", body_format="text", made_by=tokens.public_id(key)
    )
    GeneratedItem.everywhere.filter(pk=item.pk).update(revision=2)
    page = text_of(editor.get(at(newsroom, "item_page", gen=item.pk)))
    assert f"API key “{key.name}”" in page
    assert tokens.public_id(key) not in page
