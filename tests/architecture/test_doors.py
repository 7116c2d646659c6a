"""Doors translate, make one call and translate back: they never write, and name `everywhere` only with a reason."""

from __future__ import annotations

import ast

from tests.architecture.code import Module, calls, chain_of, door_modules, method_of

ALWAYS_WRITES = frozenset(
    {
        "save",
        "bulk_create",
        "bulk_update",
        "get_or_create",
        "update_or_create",
        "asave",
        "acreate",
        "aupdate",
        "adelete",
        "abulk_create",
        "select_for_update",
    }
)
WRITES_ON_A_QUERY = frozenset({"create", "update", "delete"})
QUERY_NAMES = frozenset(
    {
        "everywhere",
        "objects",
        "filter",
        "exclude",
        "rows",
        "of",
        "all",
        "get_queryset",
        "queryset",
        "select_related",
    }
)
ROWS = frozenset({"row", "obj", "instance", "item", "workspace", "thing"})
MAY_WRITE: dict[str, str] = {}
"""`path:function` and the reason; a door that needs one is a stage in the wrong place."""
MAY_NAME_EVERYWHERE = {
    "pipeline/api/generated_items/rows.py:": "prepared lists of publications and assets, by keys found for the caller",
    "pipeline/api/generated_items/rows.py:filter_items": "a subquery on rows that are the caller's already",
    "pipeline/api/generated_items/rows.py:validate_alt_texts": "by the key of the item that was found for the caller",
    "pipeline/api/generated_items/rows.py:read_progress": "by keys found for the caller",
    "pipeline/inbound/views.py:inbound": "the address's token names the source; no workspace is known before",
    "pipeline/pages/calendar/queries.py:explain_unpublished": "by the keys of cards that were found for the caller",
    "pipeline/pages/items/recurrence_display.py:list_recurrences": "a subquery on rows that are the caller's already",
    "pipeline/pages/public_feed.py:_find_feed_outlet": "the address's secret names the outlet; no workspace is known before",
    "pipeline/pages/public_feed.py:_load_entries": "by the outlet that the secret named",
    "pipeline/pages/serve_media.py:_find_upload": "the address's secret names the file; no workspace is known before",
    "pipeline/pages/serve_media.py:media": "the address's secret names the file; no workspace is known before",
}


def _writes(call: ast.Call) -> bool:
    method = method_of(call)
    if method in ALWAYS_WRITES:
        return True
    if method not in WRITES_ON_A_QUERY:
        return False
    chain = chain_of(call)[:-1]
    # `dict.update` and `collect.delete` are no writes of ours; a call on a query or on a row in hand is.
    return bool(QUERY_NAMES & set(chain)) or (
        len(chain) == 1 and (chain[0] in ROWS or chain[0].endswith(("_row", "rows")))
    )


def test_doors_never_write():
    found = [
        f"{module.at(call)} {function}: {'.'.join(chain_of(call))}"
        for module in door_modules()
        for function, call in calls(module)
        if _writes(call) and f"{module.path}:{function}" not in MAY_WRITE
    ]
    assert found == []


def test_doors_name_everywhere_only_with_a_reason():
    found = {
        f"{module.path}:{function}"
        for module in door_modules()
        for function, node in module.functions()
        if isinstance(node, ast.Attribute) and node.attr == "everywhere"
    }
    assert found - set(MAY_NAME_EVERYWHERE) == set()
    assert set(MAY_NAME_EVERYWHERE) - found == set()


def test_doors_open_no_transaction():
    """One call of a stage is one transaction, and the stage's own."""
    found = [
        module.at(node)
        for module in door_modules()
        for _, node in module.functions()
        if isinstance(node, ast.Attribute) and node.attr == "atomic"
    ]
    assert found == []


def test_the_rule_sees_what_it_forbids():
    wrong = (
        "Source.everywhere.create(name='x')",
        "Source.objects.of(w).filter(pk=1).update(name='x')",
        "rows.filter(pk=1).delete()",
        "row.save(update_fields=['name'])",
        "row.delete()",
        "Source.everywhere.bulk_create([])",
    )
    right = (
        "values.update(name='x')",
        "headers.update({})",
        "collect.delete(row, now=now)",
        "workspaces.create('x')",
    )
    for text in (*wrong, *right):
        module = Module("x.py", (text,), ast.parse(text))
        assert any(_writes(call) for _, call in calls(module)) is (text in wrong), text
