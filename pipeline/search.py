"""Finds items, raw items and sources by words, best first, with PostgreSQL's text search or SQLite's FTS5.

Database triggers keep `generated_item_words` and `raw_item_words` up to date: migrations 0002 and 0003.
Sources are few, so their names and addresses are read.
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
    "ar", "ca", "da", "de", "el", "en", "es", "eu", "fi", "fr", "ga", "hi", "hu", "hy",
    "id", "it", "lt", "nb", "ne", "nl", "pt", "ro", "ru", "sr", "sv", "ta", "tr", "yi",
]  # fmt: skip
"""The languages in which PostgreSQL knows the inflected forms of words."""
_ADDRESS_SETTINGS: Final = (
    "url", "sitemap", "channel", "playlist", "handle", "video", "user", "custom", "username", "hashtag",
    "links",
)  # fmt: skip
"""The settings of all types of sources that name an address, an account or a list."""
_EXACT_WEIGHT: Final = 4
"""The factor by which a whole word counts more in the ranking than the beginning of a word."""


def has_words(text: str) -> bool:
    """Return whether the text has a word to search for."""
    return any(query_words(text))


def find_items(
    workspace: UUID,
    text: str,
    *,
    test: bool = False,
    among: QuerySet[Any] | None = None,
    max_results: int = limits.SEARCH_RESULTS,
) -> list[UUID]:
    """Return the ids of the items with every word of the text, best first; none if the text has no words.

    The last word is also searched as the beginning of a word. `among` are the items to search, or `None` for
    all of the workspace. Of more than `SEARCH_CANDIDATES` matches the newest are ranked.
    """
    return _search_table(
        "generated_item_words", workspace, text, test=test, among=among, max_results=max_results
    )


def find_raw_items(
    workspace: UUID,
    text: str,
    *,
    test: bool = False,
    among: QuerySet[Any] | None = None,
    max_results: int = limits.SEARCH_RESULTS,
) -> list[UUID]:
    """Return the ids of the raw items with every word in their present title and text, as `find_items` does."""
    return _search_table("raw_item_words", workspace, text, test=test, among=among, max_results=max_results)


def find_sources(rows: QuerySet[Any], text: str, *, max_results: int = limits.SEARCH_RESULTS) -> list[UUID]:
    """Return the ids of the sources with every word in name or address, best first; none without words.

    The last word is also searched as the beginning of a word. Sources with all words in the name come first.
    Of more than `SEARCH_CANDIDATES` sources only the newest are searched.
    """
    words, beginnings = query_words(text)
    if not words and not beginnings:
        return []
    matches = []
    candidates = rows.order_by("-id").values_list("id", "name", "config")[: limits.SEARCH_CANDIDATES]
    for key, name, config in candidates:
        name_words, all_words = (
            set(search_words(text_part).split())
            for text_part in (name, f"{name} {' '.join(_addresses(config))}")
        )
        if _matches(all_words, words, beginnings):
            matches.append((not _matches(name_words, words, beginnings), name.casefold(), key))
    return [key for _, _, key in sorted(matches)[:max_results]]


def _matches(words_of_source: set[str], words: Sequence[str], beginnings: Sequence[str]) -> bool:
    """Return whether the source's words include all of `words`, and a word with each of the `beginnings`."""
    return words_of_source.issuperset(words) and all(
        any(word.startswith(beginning) for word in words_of_source) for beginning in beginnings
    )


def _addresses(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield the addresses, accounts and lists in a source's settings; no selectors, mappings or rules."""
    for name in _ADDRESS_SETTINGS:
        value = config.get(name) or ""
        yield from [value] if isinstance(value, str) else value


def _search_table(
    table: str, workspace: UUID, text: str, *, test: bool, among: QuerySet[Any] | None, max_results: int
) -> list[UUID]:
    """Return the ids of the table's rows with the text's words, best first; none if the text has no words."""
    words, beginnings = query_words(text)
    if not words and not beginnings:
        return []
    scope = f"w{workspace.hex}{int(test)}"
    is_postgres = connection.vendor == "postgresql"
    build_statement = _build_postgres_statement if is_postgres else _build_sqlite_statement
    narrowed, parameters = (
        ("", ()) if among is None else among.order_by().values("id").query.sql_with_params()
    )
    statement, values = build_statement(table, scope, (words, beginnings), narrowed, parameters)
    if not statement:
        return []
    with connection.cursor() as cursor:
        cursor.execute(statement, [*values, max_results])
        rows = cursor.fetchall()
    return [key if isinstance(key, UUID) else UUID(hex=key) for (key,) in rows]


def _build_postgres_statement(
    table: str,
    scope: str,
    query: tuple[Sequence[str], Sequence[str]],
    narrowed: str,
    parameters: Sequence[Any],
) -> tuple[str, list[Any]]:
    """Return the statement and its parameters for PostgreSQL; both are empty if it sees no word in the text."""
    words, beginnings = query
    all_words = " & ".join(map(_quote, [*words, *beginnings]))
    with_prefixes = " & ".join([*map(_quote, words), *(f"{_quote(beginning)}:*" for beginning in beginnings)])
    with_prefixes, queries = _parse_queries(with_prefixes, all_words)
    if not queries:
        return "", []
    inflected = " || ".join(["%s::tsquery"] * len(queries))
    join, condition = (f", ({narrowed}) AS among", "AND among.id = item_id") if narrowed else ("", "")
    # The statement is put together from the project's own texts alone. The outer query reads the words, which
    # are wide, of the candidates only.
    statement = f"""
        SELECT ranked.item_id FROM (
            SELECT item_id FROM {table}{join}
            WHERE words @@ (%s::tsquery && (({inflected}) || %s::tsquery)) {condition}
            ORDER BY item_id DESC LIMIT {limits.SEARCH_CANDIDATES}
        ) AS found JOIN {table} AS ranked USING (item_id)
        ORDER BY {_EXACT_WEIGHT} * ts_rank(words, {inflected}, 1) + ts_rank(words, %s::tsquery, 1) DESC, item_id DESC
        LIMIT %s
    """  # noqa: S608
    return statement, [
        *parameters,
        _quote(scope),
        *queries,
        with_prefixes,
        *queries,
        with_prefixes,
    ]


def _parse_queries(with_prefixes: str, all_words: str) -> tuple[str, list[str]]:
    """Return the query with prefixes, and the different queries for the words in each language.

    The list is empty if PostgreSQL sees no word. Most languages leave most words as they are, so the queries
    are made unique: the same query 29 times would be ranked 29 times for each item, and the planner would
    expect 29 times as many items.
    """
    sql = """SELECT to_tsquery('simple', %s)::text, ARRAY(
                 SELECT to_tsquery('simple', %s)::text UNION
                 SELECT to_tsquery(search_configuration(language), %s)::text FROM unnest(%s::text[]) AS language
             )"""
    with connection.cursor() as cursor:
        cursor.execute(sql, [with_prefixes, all_words, all_words, _LANGUAGES])
        parsed, queries = cursor.fetchone()
    return parsed, [query for query in queries if query]


def _quote(word: str) -> str:
    """Return the word as a quoted lexeme of a tsquery, without the characters that would end it."""
    return "'{}'".format(word.replace("\\", " ").replace("'", " "))


def _build_sqlite_statement(
    table: str,
    scope: str,
    query: tuple[Sequence[str], Sequence[str]],
    narrowed: str,
    parameters: Sequence[Any],
) -> tuple[str, list[Any]]:
    """Return the statement and its parameters for SQLite."""
    words, beginnings = query
    match = " AND ".join([*(f'"{word}"' for word in words), *(f'"{word}"*' for word in beginnings)])
    join, condition = (
        (f" CROSS JOIN ({narrowed}) AS among", "AND among.id = substr(words.item_id, 2, 32)")
        if narrowed
        else ("", "")
    )
    # The statement is put together from the project's own texts alone. The triggers store an item's id as
    # `i<hex id>0`. In the score a word of the title (10) counts ten times a word of the body (1).
    statement = f"""
        SELECT item FROM (
            SELECT substr(words.item_id, 2, 32) AS item, bm25({table}, 0, 0, 10, 1) AS score
            FROM {table} AS words{join}
            WHERE {table} MATCH %s {condition}
            ORDER BY words.rowid DESC LIMIT {limits.SEARCH_CANDIDATES}
        )
        ORDER BY score, item DESC
        LIMIT %s
    """  # noqa: S608
    return statement, [*parameters, f"scope:{scope} AND {{title body}}:({match})"]
