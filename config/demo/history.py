"""Fills the Demo workspace with sample data: four weeks lived through day by day, by the functions that
users' acts call.

The clock is handed in (`config.core.clock`), nothing leaves the process, and every step looks first at what
is there: whoever was killed in the middle goes on.
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
AGE: Final = timedelta(days=DAYS, hours=12)
"""Of the workspace."""
AHEAD: Final = 6
"""Stories of which something is still to come, on as many days."""
SOURCE: Final = "Town newsroom"
CHANNEL: Final = "Brentwick channel"
SERIES: Final = "The week in Brentwick"
EVERGREEN: Final = 2
"""The number of the story whose post comes back."""
STUBBORN: Final = "Stubborn channel"
SILENT: Final = "Silent channel"
BOARD: Final = "Village notice board"
_OUTLETS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    CHANNEL: ("simulated", {"script": []}),
    STUBBORN: ("simulated", {"script": ["reject"]}),
    SILENT: ("simulated", {"script": ["silence"]}),
    BOARD: (
        "handoff",
        {"place": "Notice board", "instructions": "Print it and pin it beside the door of the library."},
    ),
}
"""Their platforms and settings: simulated ones, with how each answers, and one where a person posts."""
EDITOR: Final = "edda@demo.example"
_PEOPLE: Final = (
    ("Edda Quinn", EDITOR, Membership.Role.EDITOR),
    ("Vito Lang", "vito@demo.example", Membership.Role.VIEWER),
)
_BESIDE: Final = ("Newsletter Issue", "Quote Graphic", "Blog Article", "Thread", "Carousel")
"""What is made of the stories in turn, beside a Short Post."""
_REVIEWED: Final = (
    "Short Post",
    "Thread",
    "Quote Graphic",
    "Carousel",
    "Newsletter Issue",
    "Blog Article",
    "Persona Short",
)
_WORK: Final = (
    "generate.run_item",
    "publish.send_publication",
    "webhooks.fan_out",
    "webhooks.deliver_to_endpoint",
    "analytics.count_events",
)


def begin(workspace: Workspace) -> None:
    """Call it in the transaction that makes the workspace; `fill` does the rest."""
    workspace.samples = Workspace.Samples.FILLING
    workspace.save(update_fields=["samples"])


def fill(workspace: Workspace, *, webhook_url: str) -> None:
    """Everything up to the present moment, and what is promised for the week ahead; nothing where it is there
    already.
    """
    now = utc_now()
    start = (now - timedelta(days=DAYS)).replace(hour=8, minute=30, second=0, microsecond=0)
    try:
        with clock.frozen_at(start):
            _roots(workspace)
        for number, story in enumerate(STORIES):
            _tell(workspace, story, number, start, now)
        _odd_ones(workspace, now)
        _from_now_on(workspace, webhook_url)
        _to_review(workspace)
        samples.mark_samples_complete(workspace)
    except samples.Stopped:
        return


# --- What everything hangs on ----------------------------------------------------------------------------------------


def _roots(workspace: Workspace) -> None:
    now = utc_now()
    with samples.fill_samples(workspace):
        for given in PERSONAS:
            if not Persona.objects.of(workspace).filter(name=given["name"]).exists():
                _mark(crud.create(workspace, given, by=ACTOR, now=now))
        for given in TOPICS:
            if not Topic.objects.of(workspace).filter(title=given["title"]).exists():
                _mark(topics.create(workspace, given, now=now))
        for name, (platform, config) in _OUTLETS.items():
            if not Outlet.objects.of(workspace).filter(name=name).exists():
                # As the outlets that a workspace has from the start: nobody connects one.
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
            asked = collect.SourceSettings(type="webhook", name=SOURCE, persona_id=persona.pk)
            _mark(collect.register(workspace, asked, now=now))
        for name, email, role in _PEOPLE:
            _person(workspace, name, email, role)


def _from_now_on(workspace: Workspace, url: str) -> None:
    """A digest of each week, an item that comes back, and a webhook endpoint, whose log begins when somebody
    answers.
    """
    with samples.fill_samples(workspace):
        items = GeneratedItem.objects.of(workspace).filter(deleted_at=None, engine_output="Short Post")
        evergreen = items.filter(raw_item__external_id=STORIES[EVERGREEN].slug).first()
        if evergreen is not None and not Recurrence.everywhere.filter(item=evergreen).exists():
            keeping.begin(evergreen, every_days=30, by=EDITOR, now=utc_now())
        if not Series.everywhere.filter(workspace=workspace, name=SERIES).exists():
            given = {"name": SERIES, "slots": [{"weekday": 4, "time": "16:00"}]}
            _mark(series.create(workspace, given, test=False, now=utc_now(), by=ACTOR))
        if not Endpoint.everywhere.filter(workspace=workspace, is_sample=True).exists():
            added = endpoints.add(workspace, url, description="Sample receiver of this instance", actor=ACTOR)
            _mark(added.endpoint)


def _mark(row: Any) -> None:
    type(row).everywhere.filter(pk=row.pk).update(is_sample=True)


def _person(workspace: Workspace, name: str, email: str, role: str) -> None:
    """Nobody can log in as them: they have no password."""
    user = User.objects.filter(email=email).first()
    if user is None:
        user = User(email=email, name=name)
        user.set_unusable_password()
        users.save_user(user, ["email", "name"], ACTOR)
    Membership.everywhere.get_or_create(
        workspace=workspace, user=user, defaults={"role": role, "is_sample": True}
    )


def _source(workspace: Workspace) -> Source | None:
    found: Source | None = Source.objects.of(workspace).filter(name=SOURCE, is_sample=True).first()
    return found


# --- Four weeks ------------------------------------------------------------------------------------------------------


def _tell(workspace: Workspace, story: DemoStory, number: int, start: datetime, now: datetime) -> None:
    """Push a story, publish what is made of it within two days, and look at its numbers up to now."""
    at = start + timedelta(days=number * (DAYS - 1) // (len(STORIES) - 1), minutes=47 * number % 200)
    is_late = len(STORIES) - number <= AHEAD
    beside = [_BESIDE[(number + place) % len(_BESIDE)] for place in range(2 if is_late or not number else 1)]
    with clock.frozen_at(at):
        items = _made(workspace, story, ["Short Post", *beside])
    for item in items[2:]:
        # The first story's waits for its day when the source changes.
        day = now.replace(hour=9, minute=15 * (number % 4), second=0, microsecond=0)
        with clock.frozen_at(now - timedelta(hours=1)):
            _publish(workspace, item, CHANNEL, at=day + timedelta(days=1 + number % (AHEAD + 1)))
    for place, item in enumerate(items[:2]):
        sent = at + timedelta(hours=2 + 7 * place, minutes=11 * number % 60)
        with clock.frozen_at(min(sent, now)):
            _publish(workspace, item, CHANNEL if place or number % 3 else "", at=None)
    with clock.frozen_at(min(at + timedelta(days=1, hours=6), now)):
        task_runner.work_all_due("analytics.measure_publication", *_WORK)


def _made(workspace: Workspace, story: DemoStory, engines: list[str]) -> list[GeneratedItem]:
    """The items of a story, made now where they aren't there."""
    with samples.fill_samples(workspace):
        raw = RawItem.objects.of(workspace).filter(external_id=story.slug, source=_source(workspace)).first()
        if raw is None:
            raw = _push(workspace, story.slug, story.title, story.body, engines)
    task_runner.work_all_due(*_WORK)
    return list(GeneratedItem.objects.of(workspace).filter(raw_item=raw, deleted_at=None).order_by("id"))


def _push(workspace: Workspace, slug: str, title: str, body: str, engines: list[str] | None) -> RawItem:
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
    """Approve it and send it, once; an empty `channel` is the workspace's own feed."""
    row = GeneratedItem.everywhere.select_related("workspace").get(pk=item.pk)
    if row.status != GeneratedItemStatus.READY or Publication.everywhere.filter(item=row).exists():
        return
    wanted = {"name": channel} if channel else {"platform": "feed"}
    outlet = Outlet.objects.of(workspace).filter(deleted_at=None, **wanted).first()
    if outlet is None:
        raise samples.Stopped
    with samples.fill_samples(workspace):
        row = decisions.approve(row, by=EDITOR, now=utc_now())
        wish = publish.PublishWish(outlets=[encode("out", outlet.pk)], publish_at=at)
        publish.request(row, wish, by=EDITOR, now=utc_now())
    if at is None:
        task_runner.work_all_due(*_WORK)


# --- What a stranger should see once ---------------------------------------------------------------------------------


def _odd_ones(workspace: Workspace, now: datetime) -> None:
    """Posts that are refused, not known to be out, or to be made by hand; one on hold, one whose source
    changed.
    """
    for number, channel in enumerate((STUBBORN, SILENT, BOARD)):
        with clock.frozen_at(now - timedelta(minutes=50 - 15 * number)):
            for item in _made(workspace, MISHAPS[number], ["Short Post"]):
                _publish(workspace, item, channel, at=None)
    with clock.frozen_at(now - timedelta(minutes=20)), samples.fill_samples(workspace):
        # What of it is published is flagged, what still waits is held.
        _push(workspace, STORIES[0].slug, STORIES[0].title, CHANGED_FERRY_LINE, None)


def _to_review(workspace: Workspace) -> None:
    """Items of all five buckets, which the service makes while one looks."""
    for story in TO_REVIEW:
        with samples.fill_samples(workspace):
            if not RawItem.objects.of(workspace).filter(external_id=story.slug).exists():
                _push(workspace, story.slug, story.title, story.body, list(_REVIEWED))
