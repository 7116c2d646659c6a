"""Short links: in the words that go out, the same for every try and preview, off until somebody switches them on."""

from __future__ import annotations

import pytest
from django.test import override_settings

from accounts import workspaces
from pipeline import outlets
from pipeline.models import GeneratedItem, Outlet, Publication, Revision, ShortLink
from pipeline.outlets import short_links
from pipeline.platforms.fitting import fit_text
from pipeline.platforms.rules import BucketRule, graphemes
from pipeline.publish.payload import payload_of
from pipeline.text.links import ascii_url
from tests.pipeline.steps import NOON, accepted, make_items, make_stage, promise, reread, send

WORDS = (
    "The tram comes: https://news.example/tram?line=4&stop=ä, or www.news.example. (https://other.example/a)"
)


@pytest.fixture
def stage(workspace):
    made = make_stage(workspace)
    Outlet.everywhere.filter(pk=made.pk).update(clicks_since=NOON)
    return reread(made)


@pytest.fixture
def item(workspace):
    found = make_items(workspace)[0]
    for model, given in ((GeneratedItem, {"pk": found.pk}), (Revision, {"item": found})):
        model.everywhere.filter(**given).update(body=WORDS, body_format="text")
    return reread(found)


def links():
    return dict(ShortLink.everywhere.values_list("code", "target"))


def test_a_post_goes_out_with_links_that_lead_on(workspace, stage, item, settings):
    row = send(promise(item, stage))
    assert row.status == "published"
    ((_, said),) = accepted(workspace)
    given = links()
    assert set(given.values()) >= {"https://news.example/tram?line=4&stop=ä", "https://other.example/a"}
    for code, target in given.items():
        assert target not in said
        assert f"{settings.PUBLIC_URL}/l/{code}" in said or target == payload_of(item, {}).link
    # What has no scheme stays as it was written, and so do the words around.
    assert "or www.news.example. (" in said
    assert ShortLink.everywhere.filter(publication=row).count() == len(given)


def test_links_are_straight_until_somebody_switches_it_on(workspace, item):
    plain = make_stage(workspace, name="Plain")
    assert plain.clicks_since is None
    send(promise(item, plain))
    assert links() == {}
    assert accepted(workspace)[0][1].startswith("The tram comes: https://news.example/tram?line=4")


def test_every_try_has_the_same_links(workspace, item):
    stage = make_stage(workspace, "429", "ok")
    Outlet.everywhere.filter(pk=stage.pk).update(clicks_since=NOON)
    payload = payload_of(item, {})
    before = short_links.shorten_post(payload, reread(stage)).body
    row = send(promise(item, stage))
    given = links()
    assert given
    Publication.everywhere.filter(pk=row.pk).update(next_attempt_at=NOON, wake_at=NOON)
    send(reread(row))
    assert links() == given
    assert all(f"/l/{code}" in before for code, target in given.items() if target != payload.link)


def test_another_outlet_and_another_item_have_others(workspace, stage, item):
    other = make_stage(workspace, name="Other")
    Outlet.everywhere.filter(pk=other.pk).update(clicks_since=NOON)
    payload = payload_of(item, {})
    assert (
        short_links.shorten_post(payload, stage).body != short_links.shorten_post(payload, reread(other)).body
    )


@pytest.mark.parametrize(
    ("bucket", "body_format"), [("blog", "markdown"), ("newsletter", "markdown"), ("text", "html")]
)
def test_articles_link_straight(stage, item, bucket, body_format):
    from dataclasses import replace

    payload = replace(payload_of(item, {}), bucket=bucket, body_format=body_format)
    assert short_links.shorten_post(payload, stage) is payload


@override_settings(PUBLIC_URL="https://press.example")
def test_our_own_addresses_and_other_schemes_stay(stage, item):
    from dataclasses import replace

    words = "https://press.example/media/x/y.png mailto:a@b.example"
    payload = replace(payload_of(item, {}), body=words, link="ftp://old.example")
    changed = short_links.shorten_post(payload, stage)
    assert (changed.body, changed.link) == (words, "ftp://old.example")


def test_parts_of_a_thread_and_the_whole_say_the_same(stage, item):
    from dataclasses import replace

    parts = ["One https://news.example/1", "Two https://news.example/2"]
    payload = replace(payload_of(item, {}), body="\n\n".join(parts), content={"parts": parts})
    changed = short_links.shorten_post(payload, stage)
    assert changed.body == "\n\n".join(changed.content["parts"])
    assert "news.example" not in changed.body


def test_mails_count_by_links_in_both_of_their_forms(workspace, stage, item, settings):
    row = promise(item, stage)
    row.outlet = stage
    html, text = short_links.shorten_mail(
        row,
        '<p><a class="b" href="https://news.example/tram?a=1&amp;b=2">Read</a> <a href="mailto:x@y.example">x</a></p>',
        "Read: https://news.example/tram?a=1&b=2",
    )
    ((code, target),) = links().items()
    assert target == "https://news.example/tram?a=1&b=2"
    address = f"{settings.PUBLIC_URL}/l/{code}"
    assert html == f'<p><a class="b" href="{address}">Read</a> <a href="mailto:x@y.example">x</a></p>'
    assert text == f"Read: {address}"
    row.outlet.clicks_since = None
    assert short_links.shorten_mail(row, html, text) == (html, text)


def test_switching_it_on_keeps_its_beginning(workspace, clock):
    stage = make_stage(workspace)

    def change(counts_clicks):
        return outlets.change(
            stage,
            name="Stage",
            config={},
            per_day=None,
            gap_minutes=None,
            discloses_ai=True,
            counts_clicks=counts_clicks,
            by="alice",
            now=clock_now(),
        ).clicks_since

    from django.utils import timezone

    clock_now = timezone.now
    began = change(True)
    assert began == NOON
    clock.shift(60)
    assert change(True) == began
    assert change(None) == began
    assert change(False) is None
    assert change(True) > began


def test_a_link_of_a_deleted_workspace_leads_nowhere(workspace, stage, item):
    send(promise(item, stage))
    code = next(iter(links()))
    assert short_links.find(code).code == code
    assert short_links.find("0" * 12) is None
    workspaces.Workspace.everywhere.filter(pk=workspace.pk).update(deleted_at=NOON)
    assert short_links.find(code) is None


@pytest.mark.parametrize(
    "source",
    ["https://news.example/tr\u00e4m?q=a b", "https://B\u00fccher.example/a?", "HTTPS://News.example/x"],
)
def test_the_source_stands_once_however_its_address_is_spelled(stage, item, source):
    from dataclasses import replace

    # As engines write it into the words.
    payload = replace(payload_of(item, {}), body=f"The tram comes.\n\n{ascii_url(source)}", link=source)
    changed = short_links.shorten_post(payload, stage)
    assert changed.link in changed.body
    post = fit_text(changed, BucketRule(500, graphemes, "graphemes"), {"link": "end"})
    assert post.payload.body.count("/l/") == 1
