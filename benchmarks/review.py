"""The review queue of many waiting items, beside a bare Django view.

The floor is a view of one line behind the same middleware, for the same person. Pages, cards, narrowed lists and the news
are asked for in turns with it, so that a busy machine slows both. Beside the times on the clock stands the processor's time
of this process, which other programs don't add to; the database's isn't in it.

Items wait in two shapes: a story for each of them, and stories that are as heavy as they get. They are copies of one that
was really made. A heavy story has ten items, two variants of each of five formats: a thread, a set of eight pictures, a film,
an article and a letter, with a claim for every other sentence of a source of 20,000 characters, and outlets on six platforms.
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
from benchmarks.floor import letters
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
FIRST_MOST_MS: Final = 1_000.0
NEXT_MOST_MS: Final = 100.0
_DEPTHS: Final = (0.0, 0.5, 0.99)
"""Which part of the stories stands above the page that is asked for."""
_NARROWED: Final = ("check=failed", "check=passed", "status=held", "bucket=text")
_SENTENCES: Final = (
    "The city council approved the new tram line on Monday evening after six hours of debate. ",
    "Construction of the northern depot begins in April and will employ about 340 people. ",
)
_LIGHT_CHARACTERS: Final = 500
_HEAVY_CHARACTERS: Final = 20_000
"""Of a source."""
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
"""Platforms of a heavy story's outlets, with what each one said of the account."""
_AT_ONCE: Final = 500


@dataclass(frozen=True)
class Waiting:
    """`items` are ids of one item of each story, the oldest first; `formats` those of the newest story by their bucket."""

    workspace: UUID
    items: Sequence[UUID]
    formats: dict[str, UUID]


def floor(request: HttpRequest) -> HttpResponse:
    from django.http import HttpResponse  # noqa: PLC0415  only where it is measured

    return HttpResponse("yes" if request.user.is_authenticated else "no")


def measure(session: Session) -> Iterator[Row]:
    from django.test import Client, override_settings  # noqa: PLC0415
    from django.urls import path  # noqa: PLC0415

    from config import urls  # noqa: PLC0415

    owner, seeded = seed_both(session, session.size.items)
    urls.urlpatterns.append(path("floor", floor))
    statements = 0

    def watch(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001  Django's
        nonlocal statements
        statements += 1
        return execute(sql, params, many, context)

    def took(address: str) -> tuple[float, float]:
        """Milliseconds on the clock, and of the processor."""
        started, busy = time.perf_counter(), time.process_time()
        answer = browser.get(address)
        spent = (time.perf_counter() - started) * 1000, (time.process_time() - busy) * 1000
        if answer.status_code != 200:
            raise RuntimeError(answer.content.decode())
        return spent

    with override_settings(ALLOWED_HOSTS=["*"]):
        browser = Client()
        browser.force_login(owner)
        for shape, waiting in seeded:
            for what, address, most in _asked(waiting):
                spent, floors = [], []
                for number in range(0 if session.is_smallest else -WARM_UP, session.size.times):
                    base, own = took("/floor"), took(address)
                    if number >= 0:
                        floors.append(base[0])
                        spent.append(own)
                statements = 0
                with connection.execute_wrapper(watch):
                    took(address)
                clocks, busy = [clock for clock, _ in spent], [busy for _, busy in spent]
                yield Row(
                    f"review, {session.database}, {shape}, {what}: p95", "ms",
                    [percentile(clocks, 0.95)], [percentile(floors, 0.95)], most=most,
                    note=f"p50 {percentile(clocks, 0.5):.1f} ms, floor {percentile(floors, 0.5):.1f} ms; "
                    f"CPU p50 {percentile(busy, 0.5):.1f} ms; {statements} statements",
                )  # fmt: skip


def _asked(waiting: Waiting) -> Iterator[tuple[str, str, float]]:
    """What it is, its address, and how many milliseconds it may take at the 95th percentile."""
    from django.urls import reverse  # noqa: PLC0415

    where = {"ws": waiting.workspace}
    page, rows, news = (reverse(name, kwargs=where) for name in ("review", "review_rows", "review_news"))
    for part in _DEPTHS:
        depth = int(len(waiting.items) * part)
        at = _public(waiting.items[len(waiting.items) - 1 - depth])
        yield f"page below {depth:,} stories", f"{page}?at={at}" if depth else page, FIRST_MOST_MS
        yield f"further rows below {depth:,} stories", f"{rows}?after={at}", FIRST_MOST_MS
    for narrowed in _NARROWED:
        yield f"page of {narrowed}", f"{page}?{narrowed}", FIRST_MOST_MS
    newest = _public(waiting.items[-1])
    yield "news", f"{news}?shown={newest}:1&first={newest}&check=failed", NEXT_MOST_MS
    for bucket, item in waiting.formats.items():
        yield f"card of {bucket}", reverse("review_card", kwargs={**where, "gen": item}), NEXT_MOST_MS


def _public(item: UUID) -> str:
    return f"gen_{letters(item.int)}"


# --- What waits ------------------------------------------------------------------------------------------------------


def seed_both(session: Session, count: int) -> tuple[User, list[tuple[str, Waiting]]]:
    """Who looks at them, and both shapes, each in a workspace of its own with so many items."""
    owner = User.objects.create_user(email="reviewer@example.test")
    with session.service() as service:
        templates = [
            _make(session, service, owner, length) for length in (_LIGHT_CHARACTERS, _HEAVY_CHARACTERS)
        ]
    seeded = [("light", _light(*templates[0], count)), ("heavy", _heavy(*templates[1], count))]
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return owner, seeded


def _make(session: Session, service: Service, owner: User, characters: int) -> Template:
    """What the service makes of a push of so long a text."""
    room = seed.newsroom(session.name("Review"))
    Membership.everywhere.create(workspace=room.workspace, user=owner, role=Membership.Role.OWNER)
    body = "".join(_SENTENCES) * (characters // sum(map(len, _SENTENCES)))
    service.push(room.token, title="Tram line approved", body=body, url="https://news.example/tram")
    items = GeneratedItem.everywhere.filter(workspace=room.workspace, status="ready")
    wait_until(items.exists, 60, "an item")
    made = items.get()
    return room.workspace, made.raw_item, RawBody.everywhere.get(raw_item=made.raw_item), made


def _light(workspace: Workspace, raw: RawItem, body: RawBody, made: GeneratedItem, count: int) -> Waiting:
    feed = Outlet.everywhere.get(workspace=workspace, platform="feed")
    made.outlets = [f"out_{letters(feed.pk.int)}"]
    made.save(update_fields=["outlets"])
    raws, bodies, rows = [], [], []
    for number in range(1, count):
        raws.append(_raw(raw, f"Story {number}"))
        bodies.append(_body(body, raws[-1]))
        rows.append(_item(made, raws[-1], f"Story {number}"))
    _keep(raws, bodies, rows, ())
    return Waiting(workspace.pk, [made.pk, *(one.pk for one in rows)], {"text": (rows or [made])[-1].pk})


def _heavy(workspace: Workspace, raw: RawItem, body: RawBody, made: GeneratedItem, count: int) -> Waiting:
    outlets = [
        Outlet.everywhere.create(workspace=workspace, platform=kind, name=kind, profile=profile)
        for kind, profile in _PROFILES.items()
    ]
    made.outlets = [f"out_{letters(outlet.pk.int)}" for outlet in outlets]
    made.claims = [_claim(body.body, number) for number in range(_CLAIMS)]
    raws, bodies, rows = [], [], []
    assets: list[Asset] = []
    firsts, newest = [], {}
    for number in range(count // (len(_FORMATS) * _VARIANTS)):
        raws.append(_raw(raw, f"Story {number}"))
        bodies.append(_body(body, raws[-1]))
        for bucket, output in _FORMATS:
            group = uuid7()
            for index in range(_VARIANTS):
                row = _item(made, raws[-1], f"Story {number}, {output} {index + 1}")
                row.variant_group, row.variant_index, row.engine_output = group, index, output
                _fill(row, bucket)
                rows.append(row)
                assets += _files(row)
                newest[bucket] = row.pk
        firsts.append(rows[-1].pk)
    _keep(raws, bodies, rows, assets)
    GeneratedItem.everywhere.filter(pk=made.pk).update(approved_at=made.created_at)
    return Waiting(workspace.pk, firsts, newest)


def _raw(source: RawItem, title: str) -> RawItem:
    row = copy(source)
    row.pk, row.title = uuid7(), title
    row.dedup_key = f"benchmark:{row.pk.hex}"
    return row


def _body(source: RawBody, raw: RawItem) -> RawBody:
    row = copy(source)
    row.pk, row.raw_item_id = uuid7(), raw.pk
    return row


def _item(source: GeneratedItem, raw: RawItem, title: str) -> GeneratedItem:
    row = copy(source)
    row.pk, row.raw_item_id, row.variant_group, row.title = uuid7(), raw.pk, uuid7(), title
    return row


def _claim(text: str, number: int) -> dict[str, Any]:
    """A sentence of the source, with its place."""
    length = sum(map(len, _SENTENCES))
    quote = _SENTENCES[0].strip()
    start = number * (len(text) // length // _CLAIMS) * length
    return {"text": quote, "quote": quote, "start": start, "end": start + len(quote), "derived": ""}


def _fill(row: GeneratedItem, bucket: str) -> None:
    """Words as a model writes them, as many as the format has at most on a good day."""
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


def _files(row: GeneratedItem) -> Iterator[Asset]:
    """Rows alone: a card reads no file."""
    if row.bucket == "image":
        for position in range(8):
            yield _file(row, position, "picture", "image", "image/png", width=1080, height=1350)
    elif row.bucket == "video":
        yield _file(row, 0, "video", "video", "video/mp4", width=1080, height=1920, duration=31.0)
        yield _file(row, 1, "thumbnail", "image", "image/png", width=1080, height=1920)
        yield _file(row, 2, "captions", "other", "text/vtt")


def _file(row: GeneratedItem, position: int, role: str, kind: str, mime_type: str, **more: Any) -> Asset:
    ending = mime_type.rpartition("/")[2]
    return Asset(
        workspace_id=row.workspace_id, item_id=row.pk, role=role, position=position, kind=kind,
        name=f"{role}-{position}.{ending}", path=f"{row.pk.hex}/{role}-{position}.{ending}", mime_type=mime_type,
        bytes=200_000, sha256="0" * 64, alt_text="A tram at a stop", **more,
    )  # fmt: skip


def _keep(
    raws: Sequence[RawItem],
    bodies: Sequence[RawBody],
    rows: Sequence[GeneratedItem],
    assets: Sequence[Asset],
) -> None:
    RawItem.everywhere.bulk_create(raws, batch_size=_AT_ONCE)
    RawBody.everywhere.bulk_create(bodies, batch_size=_AT_ONCE)
    GeneratedItem.everywhere.bulk_create(rows, batch_size=_AT_ONCE)
    Asset.everywhere.bulk_create(assets, batch_size=_AT_ONCE)
