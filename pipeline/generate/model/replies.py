"""Parses a model's reply, and builds the record of a call that got none."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final

from pipeline.plugins import TryLater
from pipeline.writers.base import CallRecord, accounted
from pipeline.writers.model_calls import ModelReply, ModelRequest
from pipeline.writers.prices import Mode, Tokens, cost_micro_usd, is_priced, table

if TYPE_CHECKING:
    from collections.abc import Mapping


_OUTCOMES: Final = {
    "refusal": "refused",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "too_long",
}


def unanswered_call(
    ask: ModelRequest,
    outcome: str,
    request_id: str = "",
    http_status: int | None = None,
    *,
    latency_ms: int = 0,
    mode: Mode = "live",
) -> CallRecord:
    """Return the record of a call without a usable answer."""
    return CallRecord(
        step=ask.step,
        provider="anthropic",
        asked_model=ask.model,
        model="",
        prompt_version=ask.prompt_version,
        outcome=outcome,
        request_id=request_id,
        http_status=http_status,
        mode=mode,
        price_table=table().id,
        latency_ms=latency_ms,
    )


def read_reply(
    ask: ModelRequest, body: str, status: int, request_id: str, *, latency_ms: int, mode: Mode = "live"
) -> ModelReply:
    """Return the reply with its record. Raises `TryLater`, with the record, if the body is no message.

    The body is parsed by hand, because the package's own parsing loses the usage if the content doesn't fit its
    types.
    """
    answer = _parse_object(body)
    usage = _as_mapping(answer.get("usage"))
    if answer.get("type") != "message" or not usage:
        message = "The model's service answered with something that isn't an answer."
        record = unanswered_call(ask, "unreadable", request_id, status, latency_ms=latency_ms, mode=mode)
        raise accounted(TryLater(message, code="model_unreadable", platform_status=status), (record,))
    tokens = _tokens(usage)
    model = _as_text(answer.get("model")) or ask.model
    stop_reason = _as_text(answer.get("stop_reason"))
    record = CallRecord(
        step=ask.step,
        provider="anthropic",
        asked_model=ask.model,
        model=model,
        prompt_version=ask.prompt_version,
        outcome=_OUTCOMES.get(stop_reason, "answered"),
        request_id=request_id,
        http_status=status,
        stop_reason=stop_reason,
        mode=mode,
        input_tokens=tokens.input,
        cache_write_5m_tokens=tokens.cache_write_5m,
        cache_write_1h_tokens=tokens.cache_write_1h,
        cache_read_tokens=tokens.cache_read,
        output_tokens=tokens.output,
        thinking_tokens=tokens.thinking,
        service_tier=_as_text(usage.get("service_tier")),
        price_table=table().id,
        is_price_known=is_priced(model),
        cost_micro_usd=cost_micro_usd(tokens, model, mode),
        latency_ms=latency_ms,
    )
    content = answer.get("content")
    blocks = [_as_mapping(block) for block in content] if isinstance(content, list) else []
    text = "".join(_as_text(block.get("text")) for block in blocks if block.get("type") == "text")
    category = _as_text(_as_mapping(answer.get("stop_details")).get("category"))
    return ModelReply(text=text, stop_reason=stop_reason, refusal_category=category, record=record)


def _tokens(usage: Mapping[str, Any]) -> Tokens:
    """Return the token counts. Cache writes without a stated lifetime count as five-minute ones."""
    cache_writes = _as_count(usage.get("cache_creation_input_tokens"))
    writes_by_lifetime = _as_mapping(usage.get("cache_creation"))
    one_hour_writes = _as_count(writes_by_lifetime.get("ephemeral_1h_input_tokens"))
    return Tokens(
        input=_as_count(usage.get("input_tokens")),
        cache_write_5m=max(
            cache_writes - one_hour_writes, _as_count(writes_by_lifetime.get("ephemeral_5m_input_tokens"))
        ),
        cache_write_1h=one_hour_writes,
        cache_read=_as_count(usage.get("cache_read_input_tokens")),
        output=_as_count(usage.get("output_tokens")),
        thinking=_as_count(_as_mapping(usage.get("output_tokens_details")).get("thinking_tokens")),
    )


def _parse_object(body: str) -> Mapping[str, Any]:
    try:
        return _as_mapping(json.loads(body))
    except (ValueError, RecursionError):
        return {}


def _as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _as_count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def milliseconds_since(started: float) -> int:
    """Return the whole milliseconds since `started`, which is a `time.monotonic()`."""
    return round((time.monotonic() - started) * 1000)
