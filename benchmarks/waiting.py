"""Items that wait for review, in two shapes: a story for each of them, and stories that are as heavy as they get.

They are copies of one that was really made. A heavy story has ten items, two variants of each of five formats: a thread,
a set of eight pictures, a film, an article and a letter, with a claim for every other sentence of a source of 20,000
characters, and outlets on six platforms.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db import connection

from accounts import workspaces
from accounts.models import User
from config.ground import hands
from config.ground.ids import encode, uuid7
from pipeline.models import Asset, GeneratedItem, Outlet, RawBody, RawItem, WorkspaceDefaults
from pipeline.stages import push

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from uuid import UUID

    from accounts.models import Workspace

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
_HANDS: Final[dict[str, dict[str, Any]]] = {
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


def seed(count: int) -> tuple[User, list[tuple[str, Waiting]]]:
    """Who looks at them, and both shapes, each in a workspace of its own with so many items."""
    owner = User.objects.create_user(email="benchmark@example.test")
    light, heavy = _newsroom("Light", owner), _newsroom("Heavy", owner)
    seeded = [("light", _light(light, count)), ("heavy", _heavy(heavy, count))]
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return owner, seeded


def _newsroom(name: str, owner: User) -> Workspace:
    workspace = workspaces.create(name, owner=owner)
    workspaces.whitelist(workspace, "benchmark")
    WorkspaceDefaults.everywhere.filter(workspace=workspace).update(engines=["Short Post"])
    return workspace


def _made(workspace: Workspace, characters: int) -> tuple[RawItem, RawBody, GeneratedItem]:
    """What a push of so long a text and the hands make of it."""
    body = "".join(_SENTENCES) * (characters // sum(map(len, _SENTENCES)))
    defaults = WorkspaceDefaults.everywhere.get(workspace=workspace)
    content = push.RawContent(title="Tram line approved", body=body, url="https://news.example/tram")
    raw = push.push(workspace, defaults.push_source, content, defaults=defaults).raw_item
    hands.work_all_due("pipeline.generate")
    return (
        RawItem.everywhere.get(pk=raw.pk),
        RawBody.everywhere.get(raw_item=raw),
        GeneratedItem.everywhere.get(raw_item=raw),
    )


def _light(workspace: Workspace, count: int) -> Waiting:
    raw, body, made = _made(workspace, _LIGHT_CHARACTERS)
    feed = Outlet.everywhere.get(workspace=workspace, platform="feed")
    made.outlets = [encode("out", feed.pk)]
    made.save(update_fields=["outlets"])
    raws, bodies, rows = [], [], []
    for number in range(1, count):
        raws.append(_raw(raw, f"Story {number}"))
        bodies.append(_body(body, raws[-1]))
        rows.append(_item(made, raws[-1], f"Story {number}"))
    _keep(raws, bodies, rows, ())
    return Waiting(workspace.pk, [made.pk, *(one.pk for one in rows)], {"text": (rows or [made])[-1].pk})


def _heavy(workspace: Workspace, count: int) -> Waiting:
    raw, body, made = _made(workspace, _HEAVY_CHARACTERS)
    made.outlets = [
        encode(
            "out", Outlet.everywhere.create(workspace=workspace, platform=kind, name=kind, profile=profile).pk
        )
        for kind, profile in _HANDS.items()
    ]
    made.claims = [_claim(body.body, number) for number in range(_CLAIMS)]
    raws, bodies, rows, assets = [], [], [], []
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
