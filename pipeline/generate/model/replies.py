"""A model's reply as it is read, and a call that has none."""

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
    """The record of a call that no answer came of."""
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
    """Read by hand: the package's own reading loses the usage where the words don't fit its types."""
    answer = _object(body)
    usage = _mapping(answer.get("usage"))
    if answer.get("type") != "message" or not usage:
        message = "The model's service answered with something that isn't an answer."
        record = unanswered_call(ask, "unreadable", request_id, status, latency_ms=latency_ms, mode=mode)
        raise accounted(TryLater(message, code="model_unreadable", platform_status=status), (record,))
    tokens = _tokens(usage)
    model = _text(answer.get("model")) or ask.model
    stop_reason = _text(answer.get("stop_reason"))
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
        service_tier=_text(usage.get("service_tier")),
        price_table=table().id,
        is_price_known=is_priced(model),
        cost_micro_usd=cost_micro_usd(tokens, model, mode),
        latency_ms=latency_ms,
    )
    content = answer.get("content")
    blocks = [_mapping(block) for block in content] if isinstance(content, list) else []
    text = "".join(_text(block.get("text")) for block in blocks if block.get("type") == "text")
    category = _text(_mapping(answer.get("stop_details")).get("category"))
    return ModelReply(text=text, stop_reason=stop_reason, refusal_category=category, record=record)


def _tokens(usage: Mapping[str, Any]) -> Tokens:
    """Cache writes whose lifetime isn't told are five-minute ones: those of an hour are told apart."""
    written = _count(usage.get("cache_creation_input_tokens"))
    split = _mapping(usage.get("cache_creation"))
    hour = _count(split.get("ephemeral_1h_input_tokens"))
    return Tokens(
        input=_count(usage.get("input_tokens")),
        cache_write_5m=max(written - hour, _count(split.get("ephemeral_5m_input_tokens"))),
        cache_write_1h=hour,
        cache_read=_count(usage.get("cache_read_input_tokens")),
        output=_count(usage.get("output_tokens")),
        thinking=_count(_mapping(usage.get("output_tokens_details")).get("thinking_tokens")),
    )


def _object(body: str) -> Mapping[str, Any]:
    try:
        return _mapping(json.loads(body))
    except (ValueError, RecursionError):
        return {}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def milliseconds_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
