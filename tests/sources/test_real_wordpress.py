"""A real publisher on this machine: WordPress, polled as rss, by page and by sitemap while its posts change."""

from __future__ import annotations

import pytest

from accounts import workspaces
from accounts.models import Plan
from pipeline.ingest import collect
from pipeline.models import RawItem, WorkspaceDefaults
from pipeline.sources import scraper
from pipeline.sources.web_pages import polite_fetch
from pipeline.sources.web_pages import poll_state as memory
from tests.pipeline.steps import claimed
from tests.sources.running_wordpress import running, wait_until

pytestmark = [pytest.mark.real]


def words(name: str, *, more: str = "") -> str:
    paragraphs = [
        f"This is what there is to say about {name}, and it is a good deal more than most people think at first.",
        f"Bakers have worked with {name} for hundreds of years, in every valley in a way of its own.",
        f"Whoever begins with {name} needs patience, a warm room, clean hands and a scale that can be trusted.{more}",
    ]
    return "\n\n".join(f"<!-- wp:paragraph --><p>{text}</p><!-- /wp:paragraph -->" for text in paragraphs)


def add(site, name: str) -> str:
    """A post of its own words; its address."""
    return site.act("add", name=f"all-about-{name}", title=f"All about {name}", content=words(name))


def edit(site, name: str, **changes: str) -> None:
    site.act("edit", name=f"all-about-{name}", **changes)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with running(tmp_path_factory.mktemp("wordpress")) as made:
        yield made


KINDS = {
    "rss": ("rss", lambda url: {"url": f"{url}/feed/"}),
    "page": ("scraper", lambda url: {"url": f"{url}/"}),
    "page by selector": (
        "scraper",
        lambda url: {"url": f"{url}/", "item_selector": ".wp-block-post-title a"},
    ),
    "sitemap": ("scraper", lambda url: {"url": f"{url}/", "sitemap": f"{url}/wp-sitemap.xml"}),
}


@pytest.fixture
def workspace(db):
    plan = Plan.objects.create(name="Large", credits_per_month=1000, active_sources_most=10)
    made = workspaces.create("Newsroom", plan=plan)
    workspaces.whitelist(made, "operator")
    WorkspaceDefaults.everywhere.filter(workspace=made).update(engines=["Short Post"])
    return made


def listed(source):
    """Each raw item by its title: its version of the content, and whether its source took it back."""
    rows = RawItem.everywhere.filter(source=source)
    return sorted((row.title, row.content_version, row.withdrawn_at is not None) for row in rows)


def everything(source):
    """Whatever a poll could have written about the entries of a source."""
    rows = RawItem.everywhere.filter(source=source).order_by("pk")
    entries = source.entries.order_by("pk")
    return (
        list(rows.values_list("pk", "version", "content_version", "status", "updated_at", "withdrawn_at")),
        list(entries.values_list("key", "decision", "decided_at")),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_change_is_seen_once(site, workspace, monkeypatch, kind):
    monkeypatch.setattr(polite_fetch, "pause", lambda seconds: None)
    # A busy machine's PHP may take long; nothing here is about time.
    monkeypatch.setattr(scraper, "FETCH_SECONDS", 600)
    # A page rests for a tenth of the time for which it stayed the same, which a busy machine stretches to seconds.
    monkeypatch.setattr(memory.PageRecord, "is_due", lambda self, *, now: not self.stamp)
    site.act("empty")
    links = {name: add(site, name) for name in ("rye", "wheat", "oats", "spelt")}
    kind_name, config_of = KINDS[kind]
    source = collect.register(
        workspace, collect.SourceSettings(type=kind_name, config=config_of(site.url), first_poll="all")
    )

    def poll():
        before = source.last_polled_at

        def is_polled():
            # The host rests for a moment between two fetches; a poll that comes too soon only waits.
            collect.poll(claimed(source))
            source.refresh_from_db()
            return source.last_polled_at != before

        wait_until(is_polled, "The poll")
        assert (source.status, source.last_error) == ("active", None)
        return listed(source)

    before = [(f"All about {name}", 1, False) for name in ("oats", "rye", "spelt", "wheat")]
    assert poll() == before
    addresses = RawItem.everywhere.filter(source=source).values_list("url", flat=True)
    assert sorted(addresses) == sorted(links.values())

    def nothing_more():
        kept = everything(source)
        poll()
        assert everything(source) == kept

    nothing_more()
    site.act(
        "comment", name="all-about-oats", content="Very true, and thank you for writing all of this down."
    )
    nothing_more()

    add(site, "maize")
    edit(site, "rye", content=words("rye", more=" And a good night's sleep."))
    site.act("trash", name="all-about-wheat")
    if kind == "rss":
        # A feed only leaves it out, which the stage believes at the second poll.
        assert ("All about wheat", 1, False) in poll()
    assert poll() == [
        ("All about maize", 1, False),
        ("All about oats", 1, False),
        ("All about rye", 2, False),
        ("All about spelt", 1, False),
        ("All about wheat", 1, True),
    ]
    nothing_more()

    edit(site, "oats", title="All about oats, again")
    edit(site, "maize", content=words("maize", more=" Or two of them."))
    assert poll() == [
        ("All about maize", 2, False),
        ("All about oats, again", 2, False),
        ("All about rye", 2, False),
        ("All about spelt", 1, False),
        ("All about wheat", 1, True),
    ]
    nothing_more()
    assert sorted(source.entries.values_list("decision", flat=True)) == [
        "new",
        "revised",
        "revised",
        "revised",
        "withdrawn",
    ]
