"""Holds the SQL of the floor, which is written by hand and frozen, except for fields that the answers gain."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

TOKEN: Final = """
    SELECT workspace.id, api_token.scopes, api_token.is_test, workspace.whitelisted_at,
        workspace.requires_approval
    FROM api_token JOIN workspace ON workspace.id = api_token.workspace_id
    WHERE api_token.digest = %s AND api_token.revoked_at IS NULL AND workspace.deleted_at IS NULL
        AND (api_token.expires_at IS NULL OR api_token.expires_at > %s)
"""


class ListedItem(NamedTuple):
    """The columns of an item that the list reads."""

    id: Any
    test: Any
    bucket: Any
    engine_output: Any
    status: Any
    held: Any
    flagged: Any
    revision: Any
    version: Any
    variant_group: Any
    variant_index: Any
    angle: Any
    title: Any
    body: Any
    body_format: Any
    excerpt: Any
    language: Any
    source_id: Any
    raw_item_id: Any
    topic_id: Any
    persona_id: Any
    outlets: Any
    overrides: Any
    approved_by: Any
    approved_at: Any
    approved_revision: Any
    rejection: Any
    generator: Any
    checks_revision: Any
    error: Any
    publish_at: Any
    created_at: Any
    ready_at: Any
    published_at: Any
    updated_at: Any


LIST: Final = f"""
    SELECT {", ".join(ListedItem._fields)}
    FROM generated_item
    WHERE workspace_id = %s AND test = FALSE AND deleted_at IS NULL
    ORDER BY id DESC LIMIT 26
"""
PUBLICATIONS: Final = """
    SELECT item_id, id, version, revision, outlet_id, platform, status, external_id, url, attempt_count, error, due_at,
        local_time, zone, late_policy, max_lateness_minutes, next_attempt_at, published_at, test, created_at, updated_at
    FROM publication WHERE item_id IN ({marks}) ORDER BY id
"""
ASSETS: Final = """
    SELECT item_id, id, role, position, kind, name, secret, mime_type, bytes, width, height, duration, alt_text
    FROM asset WHERE item_id IN ({marks}) AND revoked_at IS NULL ORDER BY position, id
"""
DEFAULTS: Final = """
    SELECT push_source_id, workspace_defaults.persona_id, workspace_defaults.engines, workspace_defaults.outlets,
        source.variants
    FROM workspace_defaults JOIN source ON source.id = workspace_defaults.push_source_id
    WHERE workspace_defaults.workspace_id = %s
"""


def insert_sql(table: str, columns: str) -> str:
    return f"INSERT INTO {table} ({columns}) VALUES ({', '.join(['%s'] * len(columns.split(',')))})"


RAW_ITEM: Final = insert_sql(
    "raw_item",
    "id, workspace_id, lease_token, attempts, test, source_id, dedup_key, external_id, url, title, language, author, "
    "media, metadata, engines, variants, persona_id, content_hash, version, content_version, status, request_id, "
    "created_at, updated_at",
)
RAW_BODY: Final = insert_sql(
    "raw_body", "id, workspace_id, raw_item_id, number, title, body, body_format, content_hash, created_at"
)
GENERATION: Final = insert_sql(
    "generation",
    "id, workspace_id, due_at, wake_at, lease_token, attempts, test, engine, raw_item_id, raw_version, persona_id, "
    "variants, status, stage, answers, credits_reserved, request_id, created_at",
)
GENERATED_ITEM: Final = insert_sql(
    "generated_item",
    "id, workspace_id, test, generation_id, source_id, raw_item_id, persona_id, bucket, engine_output, "
    "engine_version, status, held, revision, version, variant_group, variant_index, angle, title, body, body_format, "
    "content, excerpt, language, outlets, overrides, approval_required, approved_by, generator, claims, checks, "
    "created_at, updated_at",
)
EVENT: Final = insert_sql(
    "event", "id, workspace_id, test, type, body, raw_item_id, source_id, request_id, created_at"
)
BALANCE: Final = """
    UPDATE credit_balance SET available = available - %s, reserved = reserved + %s
    WHERE workspace_id = %s AND period_start = %s
"""
LEDGER: Final = insert_sql(
    "ledger_entry",
    "id, workspace_id, kind, amount, reserved_change, used_change, subject, reason, created_at",
)
