"""Seeds workspaces without limits, and fills one with generated items, which SQL copies from a few template rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from random import Random
from typing import TYPE_CHECKING, Any, Final

from django.db import connection, transaction
from django.db.models import F
from uuid_utils.compat import uuid7

from accounts import workspaces
from accounts.access import tokens
from accounts.models import CreditBalance, Membership, User
from config.core.database.bulk_update import update_each
from pipeline.models import Asset, GeneratedItem, Generation, Outlet, Publication, RawItem, WorkspaceDefaults
from webhooks.models import Endpoint

if TYPE_CHECKING:
    from uuid import UUID

    from django.db.models import Model

    from accounts.models import Workspace
    from benchmarks.service import Receiver

TEMPLATE_COUNT: Final = 40
"""The number of items that differ in status, bucket, files and publications; the others are copies of them."""
OWN_PER_FOREIGN: Final = 4
"""After so many items follows one of another workspace, which must not be read."""
_ACTOR: Final = "benchmarks"
_BATCH_SIZE: Final = 5_000


@dataclass(frozen=True)
class SeededList:
    """A workspace with a long list of items."""

    workspace: Workspace
    token: str
    push_token: str
    """The token of another workspace, so that pushes don't change the list."""
    rows: dict[str, int]
    """The number of rows in each table."""


@dataclass(frozen=True)
class Newsroom:
    """A workspace without limits that makes one short post of each push."""

    workspace: Workspace
    token: str


STORY: Final = (
    "The city council approved the new tram line on Monday evening after six hours of debate. Construction of the "
    "northern depot begins in April and will employ about 340 people. The line opens in 2029 and costs 214 million. "
)


PLACES: Final = (
    "Abbey", "Alder", "Amber", "Barley", "Birch", "Bridge", "Castle", "Cedar", "Chapel", "Cherry",
    "Clover", "Copper", "Coral", "Dale", "Falcon", "Fern", "Forge", "Garden", "Grange", "Grove",
    "Harbour", "Hazel", "Heron", "Holly", "Juniper", "Kiln", "Larch", "Laurel", "Linden", "Maple",
    "Market", "Marsh", "Meadow", "Minster", "Orchard", "Otter", "Quarry", "Quay", "River", "Rowan",
    "Saddle", "Station", "Swan", "Thorn", "Walnut", "Wharf", "Willow", "Yew",
)  # fmt: skip
"""The names of a distinct story's stops."""


def make_story(name: str) -> dict[str, str]:
    """Return the fields of a push of normal length, which differ for each name."""
    body = f"{STORY}{name} is the first stop. " + STORY.replace("tram", "ferry") * 2
    return {"external_id": name, "title": f"Tram line approved, {name}", "body": body}


def make_distinct_story(name: str) -> dict[str, str]:
    """Return a story with a different first sentence, because drafts that are too similar fail their checks."""
    stops = ", ".join(Random(name).sample(PLACES, 8))
    story = make_story(name)
    return {**story, "body": f"{stops} get a stop of the tram. {story['body']}"}


def make_newsroom(name: str) -> Newsroom:
    workspace = unlimited_workspace(name)
    return Newsroom(workspace, tokens.issue(workspace, name="benchmark", actor=_ACTOR).secret)


def add_endpoint(workspace: Workspace, receiver: Receiver, path: str, **fields: Any) -> None:
    """Add an endpoint at the receiver."""
    Endpoint.everywhere.create(
        workspace=workspace, url=f"{receiver.url}{path}", secret=receiver.secret, rate=100, **fields
    )


def seed_list(items: int) -> SeededList:
    """Make a workspace with so many items, and another one whose items lie between them."""
    workspace = unlimited_workspace("Benchmark")
    foreign_workspace = unlimited_workspace("Stranger")
    minted = tokens.issue(workspace, name="benchmark", actor=_ACTOR)
    push_token = tokens.issue(foreign_workspace, name="benchmark", actor=_ACTOR)
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # A single statement makes all rows, with their search words.
            cursor.execute("SET LOCAL statement_timeout = 0")
        own_templates, foreign_templates = _make_templates(workspace), _make_templates(foreign_workspace)
        _make_copies(
            [*own_templates * OWN_PER_FOREIGN, *foreign_templates],
            items * (OWN_PER_FOREIGN + 1) // OWN_PER_FOREIGN,
        )
    _refresh_statistics()
    models = (GeneratedItem, Publication, Asset)
    rows = {model._meta.db_table: model.everywhere.count() for model in models}
    return SeededList(workspace, minted.secret, push_token.secret, rows)


def make_lively(workspace: Workspace, now: datetime) -> User:
    """Make everything recent that the first page counts, and return an owner who may open it.

    Afterwards there are half as many raw items as items; of the items a fortieth have failed, as many are late, and as
    many are scheduled.
    """
    items = GeneratedItem.everywhere.filter(workspace=workspace).count()
    items_each = max(items // 40, 1)
    owner = User.objects.create_user(email="benchmark@example.test")
    Membership.everywhere.create(workspace=workspace, user=owner, role=Membership.Role.OWNER)
    templates = list(RawItem.everywhere.filter(workspace=workspace).values_list("pk", flat=True))
    with transaction.atomic(), connection.cursor() as cursor:
        _write_new_keys(cursor, templates, items // 2)
        _copy_rows(cursor, RawItem, by="id", changed={"id": "fresh.item", "dedup_key": "fresh.secret"})
        cursor.execute("DROP TABLE fresh")
        rows = Publication.everywhere.filter(workspace=workspace)
        # Ids rise with time, so that the newest thousands can be taken one after the other.
        last_keys = list(rows.order_by("-id").values_list("pk", flat=True)[: 4 * items_each : items_each])
        rows.update(published_at=now - timedelta(hours=2), updated_at=now)
        hour = timedelta(hours=1)
        for index, (status, due_at) in enumerate(
            (("failed", now), ("scheduled", now - hour), ("scheduled", now + hour))
        ):
            rows.filter(pk__lte=last_keys[index], pk__gt=last_keys[index + 1]).update(
                status=status, due_at=due_at, published_at=None, error={"message": "The server answered 503."}
            )
    _refresh_statistics()
    return owner


def write_texts(workspace: Workspace, count: int, random: Random) -> list[str]:
    """Set title and body of the workspace's newest `count` items; return the words, the most frequent first."""
    words = ["".join(random.choices("abdegiklmnorstu", k=random.randint(4, 9))) for _ in range(5_000)]
    shares = [1 / rank for rank in range(1, len(words) + 1)]
    rows = GeneratedItem.everywhere.filter(workspace=workspace).order_by("-id")
    keys = list(rows.values_list("pk", flat=True)[:count])
    for start in range(0, len(keys), _BATCH_SIZE):
        texts = (random.choices(words, shares, k=128) for _ in keys[start : start + _BATCH_SIZE])
        pairs = zip(keys[start : start + _BATCH_SIZE], texts, strict=True)
        with transaction.atomic():
            changes = [
                ({"pk": key}, {"title": " ".join(text_words[:8]), "body": " ".join(text_words[8:])})
                for key, text_words in pairs
            ]
            update_each(GeneratedItem, changes)
    _refresh_statistics()
    return words


def unlimited_workspace(name: str) -> Workspace:
    """Create a workspace that is approved, has no rate limit and enough credits, and makes only short posts."""
    workspace = workspaces.create(name, actor=_ACTOR)
    workspaces.whitelist(workspace, _ACTOR)
    # The rate limiter must not refuse, and no push may fail for want of credits.
    workspaces.lift_limits(workspace, _ACTOR)
    # The floor too makes one engine's item for each push.
    WorkspaceDefaults.everywhere.filter(workspace=workspace).update(engines=["Short Post"])
    CreditBalance.everywhere.filter(workspace=workspace).update(available=F("available") + 10**9)
    return workspace


def _make_templates(workspace: Workspace) -> list[UUID]:
    """Create the items from which the others are copied: half are published, and a quarter have a file."""
    defaults = WorkspaceDefaults.everywhere.get(workspace=workspace)
    feed = Outlet.everywhere.get(workspace=workspace, platform="feed")
    first_time = datetime(2026, 5, 4, 8, 30, tzinfo=UTC)
    item_ids = []
    for number in range(TEMPLATE_COUNT):
        # All times differ, and some have no fraction of a second.
        at = first_time + timedelta(minutes=7 * number, microseconds=123_457 * (number % 5))
        raw = RawItem.everywhere.create(
            workspace=workspace,
            source_id=defaults.push_source_id,
            dedup_key=f"benchmark:{number}",
            url=f"https://news.example/stories/{number}",
            title=_title(number),
            engines=defaults.engines,
            persona_id=defaults.persona_id,
            content_hash="0" * 64,
            status="processed",
            created_at=at,
            updated_at=at,
        )
        generation = Generation.everywhere.create(
            workspace=workspace,
            engine="short_post",
            raw_item=raw,
            raw_version=1,
            status="done",
            created_at=at,
        )
        is_published, has_file = number % 2 == 0, number % 4 == 1
        item = GeneratedItem.everywhere.create(
            workspace=workspace,
            generation=generation,
            source_id=defaults.push_source_id,
            raw_item=raw,
            persona_id=defaults.persona_id,
            bucket="image" if has_file else "text",
            engine_output="Quote Graphic" if has_file else "Short Post",
            engine_version=1,
            status="published" if is_published else "ready",
            revision=1,
            version=3,
            variant_group=generation.pk,
            title=_title(number),
            body=_body(number),
            body_format="text",
            content={"parts": [_body(number)]},
            excerpt=_body(number)[:120],
            language="en",
            outlets=defaults.outlets,
            approved_by="tok_benchmark" if is_published else "",
            approved_at=at if is_published else None,
            approved_revision=1 if is_published else None,
            generator={
                "provider": "extractive",
                "model": "extractive-1",
                "offline": True,
                "prompt_version": 1,
                "input_tokens": 0,
                "output_tokens": 0,
                "cost_usd": 0,
                "credits": 1,
            },
            claims=[{"text": _body(number), "supported": True}],
            checks=[{"name": "length", "ok": True}],
            checks_revision=1,
            raw_version=1,
            persona_version=1,
            created_at=at,
            ready_at=at + timedelta(seconds=2),
            published_at=at + timedelta(seconds=9) if is_published else None,
            updated_at=at + timedelta(seconds=9),
        )
        if is_published:
            Publication.everywhere.create(
                workspace=workspace,
                item=item,
                outlet=feed,
                platform="feed",
                status="published",
                revision=1,
                version=3,
                attempt_count=1,
                external_id=f"entry-{number}",
                url=f"https://news.example/feed#{number}",
                due_at=at,
                published_at=at + timedelta(seconds=9),
                created_at=at,
                updated_at=at + timedelta(seconds=9),
            )
        if has_file:
            Asset.everywhere.create(
                workspace=workspace,
                item=item,
                role="slide",
                kind="image",
                name="quote.png",
                path=f"benchmark/{number}.png",
                mime_type="image/png",
                bytes=48_213 + number,
                sha256="0" * 64,
                width=1080,
                height=1350,
                alt_text=f"A quotation on a plain ground, number {number}.",
                created_at=at,
            )
        item_ids.append(item.pk)
    return item_ids


def _title(number: int) -> str:
    return f"Harbour ferries to run every ten minutes from line {number}"


def _body(number: int) -> str:
    return (
        f"From Monday on, line {number} crosses the harbour every ten minutes between six and ten o’clock. "
        "The city pays for two more boats; a ticket costs what it did. The first week is free for everybody, "
        "and the old timetable hangs beside the new one until the end of the month."
    )


def _make_copies(templates: list[UUID], count: int) -> None:
    """Copy the templates in turn, with their publications and files, by one statement for each table."""
    with connection.cursor() as cursor:
        _write_new_keys(cursor, templates, count)
        _copy_rows(cursor, GeneratedItem, by="id", changed={"id": "fresh.item"})
        _copy_rows(
            cursor, Publication, by="item_id", changed={"id": "fresh.further", "item_id": "fresh.item"}
        )
        changed = {"id": "fresh.further", "item_id": "fresh.item", "secret": "fresh.secret"}
        _copy_rows(cursor, Asset, by="item_id", changed=changed)
        cursor.execute("DROP TABLE fresh")


def _write_new_keys(cursor: Any, templates: list[UUID], count: int) -> None:
    """Write a temporary table of so many new keys, each with the key of the row to be copied."""
    keys = cycle(templates)
    kind = "uuid" if connection.vendor == "postgresql" else "char(32)"
    cursor.execute(
        f"CREATE TEMPORARY TABLE fresh (template {kind}, item {kind}, further {kind}, secret text)"
    )
    for start in range(0, count, _BATCH_SIZE):
        rows = [
            (_to_column(key), _to_column(uuid7()), _to_column(uuid7()), uuid7().hex[6:])
            for key in islice(keys, min(_BATCH_SIZE, count - start))
        ]
        cursor.executemany("INSERT INTO fresh VALUES (%s, %s, %s, %s)", rows)


def _copy_rows(cursor: Any, model: type[Model], *, by: str, changed: dict[str, str]) -> None:
    """Copy the rows whose column `by` is a template's key; `changed` are the columns with other values."""
    columns = [str(field.column) for field in model._meta.concrete_fields]
    table = model._meta.db_table
    selected = ", ".join(changed.get(column, f"{table}.{column}") for column in columns)
    cursor.execute(
        f"INSERT INTO {table} ({', '.join(columns)}) "
        f"SELECT {selected} FROM fresh JOIN {table} ON {table}.{by} = fresh.template ORDER BY fresh.item"
    )


def _to_column(key: UUID) -> UUID | str:
    return key if connection.vendor == "postgresql" else key.hex


def _refresh_statistics() -> None:
    with connection.cursor() as cursor:
        # This leaves the tables as autovacuum leaves those that have existed for a while.
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")
