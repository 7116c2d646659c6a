"""Finds items, raw items and sources by words, best first: PostgreSQL's text search and SQLite's FTS5 behind one function.

Triggers of the database keep `generated_item_words` and `raw_item_words` as the rows are: migrations 0002 and 0003.
Sources are few: their names and addresses are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import connection

from config.core.database.search_words import query_words, search_words
from pipeline import limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from django.db.models import QuerySet

_LANGUAGES: Final = [
    "ar",
    "ca",
    "da",
    "de",
    "el",
    "en",
    "es",
    "eu",
    "fi",
    "fr",
    "ga",
    "hi",
    "hu",
    "hy",
    "id",
    "it",
    "lt",
    "nb",
    "ne",
    "nl",
    "pt",
    "ro",
    "ru",
    "sr",
    "sv",
    "ta",
    "tr",
    "yi",
]
"""Those that PostgreSQL knows the forms of words of."""
_ADDRESS_SETTINGS: Final = (
    "url",
    "sitemap",
    "channel",
    "playlist",
    "handle",
    "video",
    "user",
    "custom",
    "username",
    "hashtag",
    "links",
)
"""The settings of all types of sources that name an address, an account or a list."""
_EXACT_WEIGHT: Final = 4
"""How much more a word counts than a word that only begins as one."""


def has_words(text: str) -> bool:
    """Whether there is anything to look for."""
    return any(query_words(text))


def find_items(
    workspace: UUID,
    text: str,
    *,
    test: bool = False,
    among: QuerySet[Any] | None = None,
    most: int = limits.SEARCH_RESULTS,
) -> list[UUID]:
    """Ids of the items with every word of the text, the last of them as a beginning too; best first.

    `among` narrows them. Of more than `SEARCH_CANDIDATES` the newest are ranked.
    """
    return _find("generated_item_words", workspace, text, test=test, among=among, most=most)


def find_raw_items(
    workspace: UUID,
    text: str,
    *,
    test: bool = False,
    among: QuerySet[Any] | None = None,
    most: int = limits.SEARCH_RESULTS,
) -> list[UUID]:
    """The same of raw items, by the title and text that they have now."""
    return _find("raw_item_words", workspace, text, test=test, among=among, most=most)


def find_sources(rows: QuerySet[Any], text: str, *, most: int = limits.SEARCH_RESULTS) -> list[UUID]:
    """Ids of the sources with every word in name or address, the last of them as a beginning too; best first.

    Who has all of them in the name comes before who has them in the address. Of more than `SEARCH_CANDIDATES` the
    newest are looked at.
    """
    words, beginnings = query_words(text)
    if not words and not beginnings:
        return []
    found = []
    read = rows.order_by("-id").values_list("id", "name", "config")[: limits.SEARCH_CANDIDATES]
    for key, name, config in read:
        named, told = (
            set(search_words(one).split()) for one in (name, f"{name} {' '.join(_addresses(config))}")
        )
        if _has(told, words, beginnings):
            found.append((not _has(named, words, beginnings), name.casefold(), key))
    return [key for _, _, key in sorted(found)[:most]]


def _has(told: set[str], words: Sequence[str], beginnings: Sequence[str]) -> bool:
    return told.issuperset(words) and all(any(one.startswith(begun) for one in told) for begun in beginnings)


def _addresses(config: Mapping[str, Any]) -> Iterator[str]:
    """What a source's settings say of where it reads; selectors, mappings and rules are no words of it."""
    for name in _ADDRESS_SETTINGS:
        given = config.get(name) or ""
        yield from [given] if isinstance(given, str) else given


def _find(
    table: str, workspace: UUID, text: str, *, test: bool, among: QuerySet[Any] | None, most: int
) -> list[UUID]:
    words, beginnings = query_words(text)
    if not words and not beginnings:
        return []
    scope = f"w{workspace.hex}{int(test)}"
    find = _find_on_postgres if connection.vendor == "postgresql" else _find_on_sqlite
    narrowed, parameters = (
        ("", ()) if among is None else among.order_by().values("id").query.sql_with_params()
    )
    statement, values = find(table, scope, (words, beginnings), narrowed, parameters)
    with connection.cursor() as cursor:
        cursor.execute(statement, [*values, most])
        rows = cursor.fetchall()
    return [key if isinstance(key, UUID) else UUID(hex=key) for (key,) in rows]


def _find_on_postgres(
    table: str,
    scope: str,
    query: tuple[Sequence[str], Sequence[str]],
    narrowed: str,
    parameters: Sequence[Any],
) -> tuple[str, list[Any]]:
    words, beginnings = query
    whole = " & ".join(map(_quoted, [*words, *beginnings]))
    begun = " & ".join([*map(_quoted, words), *(f"{_quoted(one)}:*" for one in beginnings)])
    stems = " || ".join(
        [
            "to_tsquery('simple', %s)",
            *(f"to_tsquery(search_configuration('{one}'), %s)" for one in _LANGUAGES),
        ]
    )
    stemmed = [whole] * (len(_LANGUAGES) + 1)
    join, same = (f", ({narrowed}) AS among", "AND among.id = item_id") if narrowed else ("", "")
    # Only texts of ours are put together here.
    statement = f"""
        SELECT item_id FROM (
            SELECT item_id, words FROM {table}{join}
            WHERE words @@ (%s::tsquery && (({stems}) || to_tsquery('simple', %s))) {same}
            ORDER BY item_id DESC LIMIT {limits.SEARCH_CANDIDATES}
        ) AS found
        ORDER BY {_EXACT_WEIGHT} * ts_rank(words, {stems}, 1) + ts_rank(words, to_tsquery('simple', %s), 1) DESC,
            item_id DESC
        LIMIT %s
    """  # noqa: S608
    return statement, [*parameters, _quoted(scope), *stemmed, begun, *stemmed, begun]


def _quoted(word: str) -> str:
    return "'{}'".format(word.replace("\\", " ").replace("'", " "))


def _find_on_sqlite(
    table: str,
    scope: str,
    query: tuple[Sequence[str], Sequence[str]],
    narrowed: str,
    parameters: Sequence[Any],
) -> tuple[str, list[Any]]:
    words, beginnings = query
    asked = " AND ".join([*(f'"{word}"' for word in words), *(f'"{word}"*' for word in beginnings)])
    join, same = (
        (f" CROSS JOIN ({narrowed}) AS among", "AND among.id = substr(words.item_id, 2, 32)")
        if narrowed
        else ("", "")
    )
    # Only texts of ours are put together here.
    statement = f"""
        SELECT item FROM (
            SELECT substr(words.item_id, 2, 32) AS item, bm25({table}, 0, 0, 10, 1) AS score
            FROM {table} AS words{join}
            WHERE {table} MATCH %s {same}
            ORDER BY words.rowid DESC LIMIT {limits.SEARCH_CANDIDATES}
        )
        ORDER BY score, item DESC
        LIMIT %s
    """  # noqa: S608
    return statement, [*parameters, f"scope:{scope} AND {{title body}}:({asked})"]
