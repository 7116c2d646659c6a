"""Fills the Demo workspace with four weeks of sample data, by the functions that users' requests call.

The clock is set (`config.core.clock`), and nothing leaves the process. Every step first checks what exists, so
that the next run continues if the process is killed.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from accounts import samples, users
from accounts.models import Membership, User, Workspace
from config.core import clock, task_runner
from config.core.clock import utc_now
from config.core.ids import encode
from config.demo.stories import CHANGED_FERRY_LINE, MISHAPS, PERSONAS, STORIES, TO_REVIEW, TOPICS
from pipeline import plugins, publish
from pipeline.ingest import collect, raw_content, store_raw_item
from pipeline.models import (
    GeneratedItem,
    GeneratedItemStatus,
    Outlet,
    Persona,
    Publication,
    RawItem,
    Recurrence,
    Series,
    Source,
    Topic,
    WorkspaceDefaults,
)
from pipeline.personas import crud, topics
from pipeline.platforms.base import Platform
from pipeline.review import decisions
from pipeline.schedule import series
from pipeline.schedule.recurring import crud as keeping
from webhooks import endpoints
from webhooks.models import Endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from config.demo.stories import DemoStory

ACTOR: Final = "manage.py demo"
DAYS: Final = 28
"""The days of the history up to now."""
WORKSPACE_AGE: Final = timedelta(days=DAYS, hours=12)
"""The age of the workspace, a little more than that of its history."""
UPCOMING_STORIES: Final = 6
"""The number of stories, the last ones, with publications that are still to come."""
SOURCE: Final = "Town newsroom"
CHANNEL: Final = "Brentwick channel"
SERIES: Final = "The week in Brentwick"
EVERGREEN_STORY: Final = 2
"""The index in `STORIES` of the story whose post recurs."""
REFUSING_CHANNEL: Final = "Stubborn channel"
SILENT_CHANNEL: Final = "Silent channel"
MANUAL_CHANNEL: Final = "Village notice board"
_OUTLETS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    CHANNEL: ("simulated", {"script": []}),
    REFUSING_CHANNEL: ("simulated", {"script": ["reject"]}),
    SILENT_CHANNEL: ("simulated", {"script": ["silence"]}),
    MANUAL_CHANNEL: (
        "handoff",
        {"place": "Notice board", "instructions": "Print it and pin it beside the door of the library."},
    ),
}
"""The outlets' platforms and settings: simulated ones, with how each answers, and one for which a person posts."""
EDITOR: Final = "edda@demo.example"
_PEOPLE: Final = (
    ("Edda Quinn", EDITOR, Membership.Role.EDITOR),
    ("Vito Lang", "vito@demo.example", Membership.Role.VIEWER),
)
_FURTHER_OUTPUTS: Final = ("Newsletter Issue", "Quote Graphic", "Blog Article", "Thread", "Carousel")
"""The engine outputs that the stories have in turn, in addition to a Short Post."""
_OUTPUTS_TO_REVIEW: Final = (
    "Short Post",
    "Thread",
    "Quote Graphic",
    "Carousel",
    "Newsletter Issue",
    "Blog Article",
    "Persona Short",
)
_JOBS: Final = (
    "generate.run_item",
    "publish.send_publication",
    "webhooks.fan_out",
    "webhooks.deliver_to_endpoint",
    "analytics.count_events",
)


def begin(workspace: Workspace) -> None:
    """Mark the workspace as being filled, in the transaction that creates it; `fill` then fills it."""
    workspace.samples = Workspace.Samples.FILLING
    workspace.save(update_fields=["samples"])


def fill(workspace: Workspace, *, webhook_url: str) -> None:
    """Create the history up to now and the publications of the week ahead, leaving rows that exist as they are.

    It ends early if somebody removes the sample data meanwhile.
    """
    now = utc_now()
    start = (now - timedelta(days=DAYS)).replace(hour=8, minute=30, second=0, microsecond=0)
    try:
        with clock.frozen_at(start):
            _create_base(workspace)
        for number, story in enumerate(STORIES):
            _publish_story(workspace, story, number, start, now)
        _create_mishaps(workspace, now)
        _create_recurring(workspace, webhook_url)
        _create_items_to_review(workspace)
        samples.mark_samples_complete(workspace)
    except samples.Stopped:
        return


# --- What everything hangs on ----------------------------------------------------------------------------------------


def _create_base(workspace: Workspace) -> None:
    """Create personas, topics, outlets, the source and the members."""
    now = utc_now()
    with samples.fill_samples(workspace):
        for fields in PERSONAS:
            if not Persona.objects.of(workspace).filter(name=fields["name"]).exists():
                _mark_sample(crud.create(workspace, fields, by=ACTOR, now=now))
        for fields in TOPICS:
            if not Topic.objects.of(workspace).filter(title=fields["title"]).exists():
                _mark_sample(topics.create(workspace, fields, now=now))
        for name, (platform, config) in _OUTLETS.items():
            if not Outlet.objects.of(workspace).filter(name=name).exists():
                # Created like the outlets that a workspace has from the start, without connecting.
                Outlet.everywhere.create(
                    workspace=workspace,
                    platform=platform,
                    name=name,
                    is_simulated=plugins.get("platforms", platform, Platform).is_simulated,
                    is_sample=True,
                    config=dict(config),
                    created_at=now,
                    updated_at=now,
                )
        if _source(workspace) is None:
            persona = Persona.objects.of(workspace).get(name=PERSONAS[0]["name"])
            source_settings = collect.SourceSettings(type="webhook", name=SOURCE, persona_id=persona.pk)
            _mark_sample(collect.register(workspace, source_settings, now=now))
        for name, email, role in _PEOPLE:
            _create_member(workspace, name, email, role)


def _create_recurring(workspace: Workspace, url: str) -> None:
    """Create a weekly digest, a recurring item, and a webhook endpoint without deliveries."""
    with samples.fill_samples(workspace):
        items = GeneratedItem.objects.of(workspace).filter(deleted_at=None, engine_output="Short Post")
        evergreen = items.filter(raw_item__external_id=STORIES[EVERGREEN_STORY].slug).first()
        if evergreen is not None and not Recurrence.everywhere.filter(item=evergreen).exists():
            keeping.begin(evergreen, every_days=30, by=EDITOR, now=utc_now())
        if not Series.everywhere.filter(workspace=workspace, name=SERIES).exists():
            series_settings = {"name": SERIES, "slots": [{"weekday": 4, "time": "16:00"}]}
            _mark_sample(series.create(workspace, series_settings, test=False, now=utc_now(), by=ACTOR))
        if not Endpoint.everywhere.filter(workspace=workspace, is_sample=True).exists():
            new_endpoint = endpoints.add(
                workspace, url, description="Sample receiver of this instance", actor=ACTOR
            )
            _mark_sample(new_endpoint.endpoint)


def _mark_sample(row: Any) -> None:
    type(row).everywhere.filter(pk=row.pk).update(is_sample=True)


def _create_member(workspace: Workspace, name: str, email: str, role: str) -> None:
    """Add a member who has no password, so that nobody can log in as them."""
    user = User.objects.filter(email=email).first()
    if user is None:
        user = User(email=email, name=name)
        user.set_unusable_password()
        users.save_user(user, ["email", "name"], ACTOR)
    Membership.everywhere.get_or_create(
        workspace=workspace, user=user, defaults={"role": role, "is_sample": True}
    )


def _source(workspace: Workspace) -> Source | None:
    source: Source | None = Source.objects.of(workspace).filter(name=SOURCE, is_sample=True).first()
    return source


# --- Four weeks ------------------------------------------------------------------------------------------------------


def _publish_story(
    workspace: Workspace, story: DemoStory, number: int, start: datetime, now: datetime
) -> None:
    """Push a story, publish its items within two days, and measure them up to now.

    The story's number spreads times, formats and outlets by modulo, so that the days differ.
    """
    pushed_at = start + timedelta(days=number * (DAYS - 1) // (len(STORIES) - 1), minutes=47 * number % 200)
    is_late = len(STORIES) - number <= UPCOMING_STORIES
    outputs = [
        _FURTHER_OUTPUTS[(number + index) % len(_FURTHER_OUTPUTS)]
        for index in range(2 if is_late or not number else 1)
    ]
    with clock.frozen_at(pushed_at):
        items = _generate_items(workspace, story, ["Short Post", *outputs])
    for item in items[2:]:
        # The first story has such an item too, which still waits when its source changes.
        day = now.replace(hour=9, minute=15 * (number % 4), second=0, microsecond=0)
        with clock.frozen_at(now - timedelta(hours=1)):
            _publish(workspace, item, CHANNEL, at=day + timedelta(days=1 + number % (UPCOMING_STORIES + 1)))
    for index, item in enumerate(items[:2]):
        published_at = pushed_at + timedelta(hours=2 + 7 * index, minutes=11 * number % 60)
        with clock.frozen_at(min(published_at, now)):
            _publish(workspace, item, CHANNEL if index or number % 3 else "", at=None)
    with clock.frozen_at(min(pushed_at + timedelta(days=1, hours=6), now)):
        task_runner.work_all_due("analytics.measure_publication", *_JOBS)


def _generate_items(workspace: Workspace, story: DemoStory, engines: list[str]) -> list[GeneratedItem]:
    """Return the story's items, after generating them if they don't exist."""
    with samples.fill_samples(workspace):
        raw = RawItem.objects.of(workspace).filter(external_id=story.slug, source=_source(workspace)).first()
        if raw is None:
            raw = _push(workspace, story.slug, story.title, story.body, engines)
    task_runner.work_all_due(*_JOBS)
    return list(GeneratedItem.objects.of(workspace).filter(raw_item=raw, deleted_at=None).order_by("id"))


def _push(workspace: Workspace, slug: str, title: str, body: str, engines: list[str] | None) -> RawItem:
    """Push a text to the sample source. Raises `samples.Stopped` if the source was removed."""
    content = raw_content.RawContent(
        external_id=slug,
        url=f"https://brentwick.example/{slug}",
        title=title,
        body=body,
        language="en",
        author="Brentwick Daily",
        published_at=utc_now(),
        engines=engines,
    )
    source = _source(workspace)
    if source is None:
        raise samples.Stopped
    defaults = WorkspaceDefaults.everywhere.get(workspace=workspace)
    return store_raw_item.push(workspace, source, content, defaults=defaults).raw_item


def _publish(workspace: Workspace, item: GeneratedItem, channel: str, *, at: datetime | None) -> None:
    """Approve an item and publish it once, or at `at`; an empty `channel` means the workspace's own feed.

    An item that isn't ready, or has a publication, stays as it is. Raises `samples.Stopped` if there is no such
    outlet.
    """
    row = GeneratedItem.everywhere.select_related("workspace").get(pk=item.pk)
    if row.status != GeneratedItemStatus.READY or Publication.everywhere.filter(item=row).exists():
        return
    outlet_filter = {"name": channel} if channel else {"platform": "feed"}
    outlet = Outlet.objects.of(workspace).filter(deleted_at=None, **outlet_filter).first()
    if outlet is None:
        raise samples.Stopped
    with samples.fill_samples(workspace):
        row = decisions.approve(row, by=EDITOR, now=utc_now())
        wish = publish.PublishWish(outlets=[encode("out", outlet.pk)], publish_at=at)
        publish.request(row, wish, by=EDITOR, now=utc_now())
    if at is None:
        task_runner.work_all_due(*_JOBS)


# --- What a stranger should see once ---------------------------------------------------------------------------------


def _create_mishaps(workspace: Workspace, now: datetime) -> None:
    """Create publications that are refused, of unknown outcome or manual, and an item whose source changed."""
    for number, channel in enumerate((REFUSING_CHANNEL, SILENT_CHANNEL, MANUAL_CHANNEL)):
        with clock.frozen_at(now - timedelta(minutes=50 - 15 * number)):
            for item in _generate_items(workspace, MISHAPS[number], ["Short Post"]):
                _publish(workspace, item, channel, at=None)
    with clock.frozen_at(now - timedelta(minutes=20)), samples.fill_samples(workspace):
        # The first story's published items are flagged, and those that still wait are put on hold.
        _push(workspace, STORIES[0].slug, STORIES[0].title, CHANGED_FERRY_LINE, None)


def _create_items_to_review(workspace: Workspace) -> None:
    """Push stories whose items, of all five buckets, the service generates after its start."""
    for story in TO_REVIEW:
        with samples.fill_samples(workspace):
            if not RawItem.objects.of(workspace).filter(external_id=story.slug).exists():
                _push(workspace, story.slug, story.title, story.body, list(_OUTPUTS_TO_REVIEW))
