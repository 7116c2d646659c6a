"""Measures the review queue with many waiting items, against a bare Django view.

The floor is a view of one line behind the same middleware, for the same person. Pages, cards, filtered lists and the news
are requested in turn with it, so that a busy machine slows both. The notes add the CPU time of this process, which other
programs don't change; the database's isn't in it.

Items wait in two shapes: a light story for each of them, and stories that are as heavy as they get. They are copies of an
item that the service made. A heavy story has ten items, two variants of each of five formats: a thread, a set of eight
pictures, a film, an article and a letter, with a claim for every other sentence of a source of 20,000 characters, and
outlets on six platforms.
"""

from __future__ import annotations

import time
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db import connection
from uuid_utils.compat import uuid7

from accounts.models import Membership, User
from benchmarks import seed
from benchmarks.floor import public_letters
from benchmarks.service import Service, Session, wait_until
from benchmarks.table import Row, percentile
from pipeline.models import Asset, GeneratedItem, Outlet, RawBody, RawItem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from accounts.models import Workspace

    Template = tuple[Workspace, RawItem, RawBody, GeneratedItem]

ON: Final = ("sqlite", "postgres")
SIZES: Final = {"items": (10_000, 20), "times": (100, 1)}
WARM_UP: Final = 5
MAX_PAGE_MS: Final = 1_000.0
MAX_CARD_MS: Final = 100.0
_SHARES_ABOVE: Final = (0.0, 0.5, 0.99)
"""The shares of the stories that stand above the measured pages."""
_FILTERS: Final = ("check=failed", "check=passed", "status=held", "bucket=text")
_SENTENCES: Final = (
    "The city council approved the new tram line on Monday evening after six hours of debate. ",
    "Construction of the northern depot begins in April and will employ about 340 people. ",
)
_LIGHT_CHARACTERS: Final = 500
_HEAVY_CHARACTERS: Final = 20_000
"""The characters of a source in each shape."""
_CLAIMS: Final = 24
_FORMATS: Final = (
    ("text", "Thread"),
    ("image", "Carousel"),
    ("video", "Template Short"),
    ("blog", "Blog Article"),
    ("newsletter", "Newsletter Issue"),
)
_VARIANTS: Final = 2
_PROFILES: Final[dict[str, dict[str, Any]]] = {
    "x": {"handle": "@newsroom"},
    "bluesky": {"handle": "newsroom.example"},
    "mastodon": {"handle": "@newsroom@social.example"},
    "linkedin": {"external_id": "urn:li:person:1"},
    "wordpress": {},
    "telegram": {"handle": "@newsroom"},
}
"""Platforms of a heavy story's outlets, with each one's profile of the account."""
_BATCH_SIZE: Final = 500


@dataclass(frozen=True)
class WaitingItems:
    """The seeded items of a workspace."""

    workspace: UUID
    items: Sequence[UUID]
    """An item of each story, the oldest first."""
    formats: dict[str, UUID]
    """Items of the newest story, by bucket."""


def floor_view(request: HttpRequest) -> HttpResponse:
    from django.http import HttpResponse  # noqa: PLC0415  only where it is measured

    return HttpResponse("yes" if request.user.is_authenticated else "no")


def measure(session: Session) -> Iterator[Row]:
    """Yield the times of each request of the review queue, in both shapes."""
    from django.test import Client, override_settings  # noqa: PLC0415
    from django.urls import path  # noqa: PLC0415

    from config import urls  # noqa: PLC0415

    owner, seeded = seed_both(session, session.size.items)
    urls.urlpatterns.append(path("floor", floor_view))
    statements = 0

    def count_statement(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001  Django's
        nonlocal statements
        statements += 1
        return execute(sql, params, many, context)

    def time_request(address: str) -> tuple[float, float]:
        """Request a page and return milliseconds by the clock, and of the processor."""
        started, cpu_ms = time.perf_counter(), time.process_time()
        answer = browser.get(address)
        times = (time.perf_counter() - started) * 1000, (time.process_time() - cpu_ms) * 1000
        if answer.status_code != 200:
            raise RuntimeError(answer.content.decode())
        return times

    with override_settings(ALLOWED_HOSTS=["*"]):
        browser = Client()
        browser.force_login(owner)
        for shape, waiting in seeded:
            for label, address, max_ms in _requests(waiting):
                times, floor_ms = [], []
                for number in range(0 if session.is_smallest else -WARM_UP, session.size.times):
                    floor_time, own_time = time_request("/floor"), time_request(address)
                    if number >= 0:
                        floor_ms.append(floor_time[0])
                        times.append(own_time)
                statements = 0
                with connection.execute_wrapper(count_statement):
                    time_request(address)
                clock_ms, cpu_ms = [clock for clock, _ in times], [cpu_ms for _, cpu_ms in times]
                yield Row(
                    f"review, {session.database}, {shape}, {label}: p95", "ms",
                    [percentile(clock_ms, 0.95)], [percentile(floor_ms, 0.95)], maximum=max_ms,
                    note=f"p50 {percentile(clock_ms, 0.5):.1f} ms, floor {percentile(floor_ms, 0.5):.1f} ms; "
                    f"CPU p50 {percentile(cpu_ms, 0.5):.1f} ms; {statements} statements",
                )  # fmt: skip


def _requests(waiting: WaitingItems) -> Iterator[tuple[str, str, float]]:
    """Yield each request's label, its address, and the goal of its 95th percentile, in milliseconds."""
    from django.urls import reverse  # noqa: PLC0415

    url_kwargs = {"ws": waiting.workspace}
    page, further_rows, news_url = (
        reverse(name, kwargs=url_kwargs) for name in ("review", "review_rows", "review_news")
    )
    for part in _SHARES_ABOVE:
        depth = int(len(waiting.items) * part)
        cursor = _public_id(waiting.items[len(waiting.items) - 1 - depth])
        yield f"page below {depth:,} stories", f"{page}?at={cursor}" if depth else page, MAX_PAGE_MS
        yield f"further rows below {depth:,} stories", f"{further_rows}?after={cursor}", MAX_PAGE_MS
    for filter_query in _FILTERS:
        yield f"page of {filter_query}", f"{page}?{filter_query}", MAX_PAGE_MS
    newest = _public_id(waiting.items[-1])
    yield "news", f"{news_url}?shown={newest}:1&first={newest}&check=failed", MAX_CARD_MS
    for bucket, item in waiting.formats.items():
        yield f"card of {bucket}", reverse("review_card", kwargs={**url_kwargs, "gen": item}), MAX_CARD_MS


def _public_id(item: UUID) -> str:
    return f"gen_{public_letters(item.int)}"


# --- The items -------------------------------------------------------------------------------------------------------


def seed_both(session: Session, count: int) -> tuple[User, list[tuple[str, WaitingItems]]]:
    """Return a reviewer, and the items of both shapes, each in a separate workspace with so many items."""
    owner = User.objects.create_user(email="reviewer@example.test")
    with session.service() as service:
        templates = [
            _make_template(session, service, owner, length)
            for length in (_LIGHT_CHARACTERS, _HEAVY_CHARACTERS)
        ]
    seeded = [("light", _seed_light(*templates[0], count)), ("heavy", _seed_heavy(*templates[1], count))]
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return owner, seeded


def _make_template(session: Session, service: Service, owner: User, characters: int) -> Template:
    """Push a text of that length, and return the rows that the service makes of it."""
    room = seed.make_newsroom(session.name("Review"))
    Membership.everywhere.create(workspace=room.workspace, user=owner, role=Membership.Role.OWNER)
    body = "".join(_SENTENCES) * (characters // sum(map(len, _SENTENCES)))
    service.push(room.token, title="Tram line approved", body=body, url="https://news.example/tram")
    items = GeneratedItem.everywhere.filter(workspace=room.workspace, status="ready")
    wait_until(items.exists, 60, "an item")
    item = items.get()
    return room.workspace, item.raw_item, RawBody.everywhere.get(raw_item=item.raw_item), item


def _seed_light(
    workspace: Workspace, raw: RawItem, body: RawBody, template: GeneratedItem, count: int
) -> WaitingItems:
    """Copy the template into stories with one item each."""
    feed = Outlet.everywhere.get(workspace=workspace, platform="feed")
    template.outlets = [f"out_{public_letters(feed.pk.int)}"]
    template.save(update_fields=["outlets"])
    raws, bodies, rows = [], [], []
    for number in range(1, count):
        raws.append(_copy_raw_item(raw, f"Story {number}"))
        bodies.append(_copy_raw_body(body, raws[-1]))
        rows.append(_copy_item(template, raws[-1], f"Story {number}"))
    _insert(raws, bodies, rows, ())
    return WaitingItems(
        workspace.pk, [template.pk, *(row.pk for row in rows)], {"text": (rows or [template])[-1].pk}
    )


def _seed_heavy(
    workspace: Workspace, raw: RawItem, body: RawBody, template: GeneratedItem, count: int
) -> WaitingItems:
    """Copy the template into stories with all formats and variants, which fill every part of a card."""
    outlets = [
        Outlet.everywhere.create(workspace=workspace, platform=kind, name=kind, profile=profile)
        for kind, profile in _PROFILES.items()
    ]
    template.outlets = [f"out_{public_letters(outlet.pk.int)}" for outlet in outlets]
    template.claims = [_make_claim(body.body, number) for number in range(_CLAIMS)]
    raws, bodies, rows = [], [], []
    assets: list[Asset] = []
    first_items, newest_by_bucket = [], {}
    for number in range(count // (len(_FORMATS) * _VARIANTS)):
        raws.append(_copy_raw_item(raw, f"Story {number}"))
        bodies.append(_copy_raw_body(body, raws[-1]))
        for bucket, output in _FORMATS:
            group = uuid7()
            for index in range(_VARIANTS):
                row = _copy_item(template, raws[-1], f"Story {number}, {output} {index + 1}")
                row.variant_group, row.variant_index, row.engine_output = group, index, output
                _fill_content(row, bucket)
                rows.append(row)
                assets += _make_assets(row)
                newest_by_bucket[bucket] = row.pk
        first_items.append(rows[-1].pk)
    _insert(raws, bodies, rows, assets)
    GeneratedItem.everywhere.filter(pk=template.pk).update(approved_at=template.created_at)
    return WaitingItems(workspace.pk, first_items, newest_by_bucket)


def _copy_raw_item(source: RawItem, title: str) -> RawItem:
    row = copy(source)
    row.pk, row.title = uuid7(), title
    row.dedup_key = f"benchmark:{row.pk.hex}"
    return row


def _copy_raw_body(source: RawBody, raw: RawItem) -> RawBody:
    row = copy(source)
    row.pk, row.raw_item_id = uuid7(), raw.pk
    return row


def _copy_item(source: GeneratedItem, raw: RawItem, title: str) -> GeneratedItem:
    row = copy(source)
    row.pk, row.raw_item_id, row.variant_group, row.title = uuid7(), raw.pk, uuid7(), title
    return row


def _make_claim(text: str, number: int) -> dict[str, Any]:
    """Return a claim with a sentence of the source, and its offsets there."""
    length = sum(map(len, _SENTENCES))
    quote = _SENTENCES[0].strip()
    start = number * (len(text) // length // _CLAIMS) * length
    return {"text": quote, "quote": quote, "start": start, "end": start + len(quote), "derived": ""}


def _fill_content(row: GeneratedItem, bucket: str) -> None:
    """Set content as a model writes it, about as much as the format allows."""
    row.bucket = bucket
    post = f"{''.join(_SENTENCES)}https://news.example/tram"
    if bucket == "text":
        parts = [post] * 12
        row.body, row.content = "\n\n".join(parts), {"parts": parts}
    elif bucket == "image":
        row.body, row.content = post, {"caption": post, "slides": []}
    elif bucket == "video":
        row.body, row.content = post, {"caption": post, "tags": ["tram"], "script": "".join(_SENTENCES) * 4}
    else:
        row.body = "\n\n".join(f"## Part {number}\n\n{''.join(_SENTENCES) * 6}" for number in range(10))
        row.body_format = "markdown"
        row.content = (
            {"slug": "tram", "meta_description": "A tram.", "tags": ["tram"]}
            if bucket == "blog"
            else {"subject": row.title, "preheader": "What is built, and when"}
        )


def _make_assets(row: GeneratedItem) -> Iterator[Asset]:
    """Yield rows of files without the files, since a card reads none."""
    if row.bucket == "image":
        for position in range(8):
            yield _make_asset(row, position, "picture", "image", "image/png", width=1080, height=1350)
    elif row.bucket == "video":
        yield _make_asset(row, 0, "video", "video", "video/mp4", width=1080, height=1920, duration=31.0)
        yield _make_asset(row, 1, "thumbnail", "image", "image/png", width=1080, height=1920)
        yield _make_asset(row, 2, "captions", "other", "text/vtt")


def _make_asset(
    row: GeneratedItem, position: int, role: str, kind: str, mime_type: str, **extra: Any
) -> Asset:
    suffix = mime_type.rpartition("/")[2]
    return Asset(
        workspace_id=row.workspace_id, item_id=row.pk, role=role, position=position, kind=kind,
        name=f"{role}-{position}.{suffix}", path=f"{row.pk.hex}/{role}-{position}.{suffix}", mime_type=mime_type,
        bytes=200_000, sha256="0" * 64, alt_text="A tram at a stop", **extra,
    )  # fmt: skip


def _insert(
    raws: Sequence[RawItem], bodies: Sequence[RawBody], rows: Sequence[GeneratedItem], assets: Sequence[Asset]
) -> None:
    RawItem.everywhere.bulk_create(raws, batch_size=_BATCH_SIZE)
    RawBody.everywhere.bulk_create(bodies, batch_size=_BATCH_SIZE)
    GeneratedItem.everywhere.bulk_create(rows, batch_size=_BATCH_SIZE)
    Asset.everywhere.bulk_create(assets, batch_size=_BATCH_SIZE)
