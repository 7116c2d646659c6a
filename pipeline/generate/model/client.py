"""Asks a model through the vendor's official package, without the package's own retries, waits and traces."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from config.core.clock import utc_now
from config.core.http_client.retry_after import read_retry_after
from pipeline.generate.model.call_timeout import CallLimit
from pipeline.generate.model.replies import milliseconds_since, read_reply, unanswered_call
from pipeline.plugins import NeedsReconnect, Refused, TryLater
from pipeline.writers.base import Accounted, CallRecord, accounted
from pipeline.writers.model_calls import ModelChoice, ModelReply, ModelRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from anthropic import Anthropic, APIStatusError

TIMEOUT_SECONDS: Final = 120.0
"""The limit of one whole call. Before each call the caller's lease is renewed for longer than that."""
CONNECT_SECONDS: Final = 10.0
"""The limit of connecting to one address of the service."""
MAX_RETRY_AFTER: Final = timedelta(hours=24)
"""The longest wait that a server may ask for; the package itself would sleep for whatever it says."""

_NO_MONEY_CODES: Final = frozenset(
    {
        "contract_spend_limit_reached",
        "enforced_spend_limit_reached",
        "linked_organization_spend_limit_reached",
    }
)
"""Error codes that mean a lack of money, whatever the HTTP status is."""
# Gateways answer 400 where the vendor has own statuses; these sentences are from LiteLLM's issues, read on 25
# November 2026.
_MONEY_PATTERN: Final = re.compile(
    r"credit balance|budget[ _](?:has been )?exceeded|insufficient[ _](?:funds|credits?|quota|balance)",
    re.IGNORECASE,
)
_KEY_PATTERN: Final = re.compile(
    r"\bauth(?:entication|orization)?[ _]error\b|\bunauthori[sz]ed\b|\b(?:virtual|proxy|access)[ _]key\b"
    r"|\b(?:invalid|incorrect|expired|missing|unknown|no|wrong)\b[^.\n]{0,40}\b(?:api[ _-]?key|x-api-key|token(?! (?:count|limit|budget|number))|credentials?)\b"
    r"|\bapi[ _-]?key\b[^.\n]{0,40}\b(?:invalid|incorrect|expired|missing|required|not (?:valid|found|provided))\b",
    re.IGNORECASE,
)
_MODEL_PATTERN: Final = re.compile(
    r"\b(?:invalid|unknown|unrecogni[sz]ed|no such) ['\"]?model\b|\bmodel_not_found\b|\bkey_model_access_denied\b"
    r"|\bno ['\"\\]*model_name\b|\bLLM provider not provided\b"
    r"|\bmodel\b[^\n]{0,80}\b(?:not found|does(?:n't| not) exist|is(?:n't| not) (?:available|allowed|valid|found))\b",
    re.IGNORECASE,
)
_MAX_REFUSAL_CHARACTERS: Final = 4_000
"""The most characters of a refusal that are searched."""
_MAX_VENDOR_CHARACTERS: Final = 200
"""The most characters of the vendor's own sentence that are quoted."""
_NO_REQUEST: Final = ModelRequest("", "", (), (), {}, 0, "", "")
"""Stands for the request of a call to the batches, which asks no model."""
Cache = Literal["5m", "1h"] | None
"""How long the service may keep a marked prefix; `None` for not at all."""
Owner = Literal["workspace", "operator"]
"""The owner of the key, who has to act after a refusal."""
_KEY_OWNER_TEXT: Final = {"workspace": "the workspace's own key", "operator": "this service's key"}
_KEY_REFUSED: Final = {
    "workspace": "The workspace's own key for the model was refused. Replace it with a valid one, then retry.",
    "operator": "This service's key for the model was refused. Its operator has to replace it; retry afterwards.",
}
_UNPAID: Final = {
    "workspace": "The account behind the workspace's own key for the model has no money left. Top it up, then retry.",
    "operator": "The account behind this service's key for the model has no money left. Its operator has to top it "
    "up; retry afterwards.",
}
_ANOTHER_MODEL: Final = {
    "workspace": "Use a key that may ask it, then retry.",
    "operator": "The operator has to choose another one; retry afterwards.",
}


@dataclass
class AccountClient:
    """Asks one model account.

    The package (76 MB, a second to import) is loaded at the first call, not before.
    """

    api_key: str = field(repr=False)
    base_url: str | None
    owner: Owner
    choice: ModelChoice
    timeout: float
    before_call: Callable[[], None] | None
    after_call: Callable[[CallRecord], None] | None
    _sdk: Anthropic | None = field(default=None, repr=False)
    _limit: CallLimit = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._limit = CallLimit(self.timeout)

    def ask(self, ask: ModelRequest) -> ModelReply:
        """Make one call and return its reply with its record.

        Raises `Accounted`, with the record, as `TryLater`, `Refused` or `NeedsReconnect` if the call failed.
        `before_call` may raise them too, and any other error of its own.
        """
        if self.before_call is not None:
            try:
                self.before_call()
            except (TryLater, Refused, NeedsReconnect) as error:
                raise accounted(error, ()) from error
        started = time.monotonic()
        try:
            reply = self._send(ask, started)
        except Accounted as error:
            self._report_calls(error.calls)
            raise
        self._report_calls((reply.record,))
        return reply

    def close(self) -> None:
        if self._sdk is not None:
            self._sdk.close()
            self._sdk = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _report_calls(self, calls: tuple[CallRecord, ...]) -> None:
        if self.after_call is not None:
            for call in calls:
                self.after_call(call)

    def send_batch_call(self, method: Literal["GET", "POST"], path: str, body: Any = None) -> str:
        """Make one call to the account's batches and return the body of the answer.

        Raises `TryLater`, `Refused` or `NeedsReconnect` if the call failed, without records, because only the
        results of a batch say what it cost. `before_call` may raise errors of its own.
        """
        import anthropic  # noqa: PLC0415 - see _load_sdk
        import httpx2  # noqa: PLC0415 - see _load_sdk

        if self.before_call is not None:
            self.before_call()
        started = time.monotonic()
        sdk = self._load_sdk()
        try:
            with self._limit.running():
                answer: httpx2.Response = (
                    sdk.get(path, cast_to=httpx2.Response)
                    if method == "GET"
                    else sdk.post(path, body=body or {}, cast_to=httpx2.Response)
                )
        except anthropic.APIConnectionError as error:
            if self._limit.is_over or isinstance(error, anthropic.APITimeoutError):
                message = "The model's service took too long to answer."
                raise accounted(TryLater(message, code="model_timeout"), ()) from error
            message = "The model's service couldn't be reached."
            raise accounted(TryLater(message, code="model_unreachable"), ()) from error
        except anthropic.APIStatusError as error:
            raise _failure_for_status(_NO_REQUEST, error, started, self.owner, keeps_record=False) from error
        return answer.text

    def _load_sdk(self) -> Anthropic:
        """Return the vendor's client, made at the first call."""
        if self._sdk is None:
            import anthropic  # noqa: PLC0415 - a second and 76 MB that the web process never needs

            self._sdk = anthropic.Anthropic(
                api_key=self.api_key,
                base_url=self.base_url,
                timeout=anthropic.Timeout(self.timeout, connect=min(CONNECT_SECONDS, self.timeout)),
                http_client=anthropic.DefaultHttpxClient(
                    verify=_tls_context(), event_hooks={"request": [self._limit.follow]}
                ),
                # The package would sleep as long as `retry-after` says, and hold our worker slot meanwhile.
                max_retries=0,
                open_telemetry={"traces": False, "propagation": False},
            )
        return self._sdk

    def _send(self, ask: ModelRequest, started: float) -> ModelReply:
        """Send the request and return its reply; each `Accounted` error carries the record of the call."""
        import anthropic  # noqa: PLC0415 - see _load_sdk

        request = request_of(ask)
        # Built before the time starts: loading certificates takes a while.
        sdk = self._load_sdk()
        try:
            with self._limit.running():
                raw = sdk.messages.with_raw_response.create(**request)
        except anthropic.APIConnectionError as error:
            if self._limit.is_over or isinstance(error, anthropic.APITimeoutError):
                message = "The model took too long to answer."
                record = _failed_call(ask, "timed_out", started)
                raise accounted(TryLater(message, code="model_timeout"), (record,)) from error
            message = "The model's service couldn't be reached."
            record = _failed_call(ask, "unreachable", started)
            raise accounted(TryLater(message, code="model_unreachable"), (record,)) from error
        except anthropic.APIStatusError as error:
            raise _failure_for_status(ask, error, started, self.owner) from error
        request_id = raw.headers.get("request-id") or ""
        return read_reply(
            ask, raw.text(), raw.status_code, request_id, latency_ms=milliseconds_since(started)
        )


@cache
def _tls_context() -> Any:
    """Return an `ssl.SSLContext`, shared because each client would load the certificates again (some 50 ms)."""
    import httpx2  # noqa: PLC0415 - see _load_sdk

    return httpx2.create_ssl_context()


def request_of(ask: ModelRequest, *, cache: Cache = "5m") -> dict[str, Any]:
    """Return the request's parameters for one call, live or in a batch."""
    output_config: dict[str, Any] = {"format": {"type": "json_schema", "schema": dict(ask.schema)}}
    if ask.effort:
        output_config["effort"] = ask.effort
    return {
        "model": ask.model,
        "max_tokens": ask.max_tokens,
        "system": [_with_cache_lifetime(block, cache) for block in ask.system],
        "messages": [dict(message) for message in ask.messages],
        "output_config": output_config,
    }


def _with_cache_lifetime(block: Mapping[str, Any], cache: Cache) -> dict[str, Any]:
    """Return the block with its cache mark changed to this lifetime, or without the mark for `None`.

    A mark without a lifetime stands for five minutes.
    """
    if cache is None:
        return {name: value for name, value in block.items() if name != "cache_control"}
    if cache == "5m" or "cache_control" not in block:
        return dict(block)
    return {**block, "cache_control": {**block["cache_control"], "ttl": cache}}


def connect_account(
    *,
    api_key: str,
    base_url: str = "",
    owner: Owner = "operator",
    choice: ModelChoice | None = None,
    timeout: float = TIMEOUT_SECONDS,
    before_call: Callable[[], None] | None = None,
    after_call: Callable[[CallRecord], None] | None = None,
) -> AccountClient:
    """Return a client for one key; nothing is loaded or called yet. Close it, or use it in a `with`.

    `before_call` runs before each call and may raise `TryLater` or `Refused`, to stop it for a cap or a
    switch. `after_call` gets each call's record as soon as it is known, before the answer is used, so that a
    task that is killed next has lost no cost from the ledger. Without a `base_url` the package's own setting,
    `ANTHROPIC_BASE_URL`, holds. Raises `NeedsReconnect` without a key: the package would look for credentials
    in the environment and on disk, and fail much later.
    """
    if not api_key.strip():
        message = "There is no key for the model. Enter one, or let the workspace write without AI."
        raise NeedsReconnect(message, code="model_key_missing")
    return AccountClient(
        api_key=api_key.strip(),
        base_url=base_url.strip() or None,
        owner=owner,
        choice=choice or ModelChoice(),
        timeout=timeout,
        before_call=before_call,
        after_call=after_call,
    )


def _failure_for_status(
    ask: ModelRequest, error: APIStatusError, started: float, owner: Owner, *, keeps_record: bool = True
) -> Exception:
    """Return the failure for an error status, by status, type and code.

    The vendor's sentences change, so they are read only for a 400, which gateways also answer for faults of keys,
    models and money.
    """
    status = error.status_code
    error_text = error.response.text[:_MAX_REFUSAL_CHARACTERS] if status == 400 else ""
    retry_after = read_retry_after(error.response.headers, now=utc_now(), longest=MAX_RETRY_AFTER)
    outcome = "failed"
    failure: TryLater | Refused | NeedsReconnect
    if (
        status == 402
        or error.type == "billing_error"
        or error.error_code in _NO_MONEY_CODES
        or _MONEY_PATTERN.search(error_text)
    ):
        message = _UNPAID[owner]
        failure = NeedsReconnect(message, code="model_unpaid", platform_status=status)
    elif status in {401, 403} or _KEY_PATTERN.search(error_text):
        message = _KEY_REFUSED[owner]
        failure = NeedsReconnect(message, code="model_key_refused", platform_status=status)
    elif status == 404 or _MODEL_PATTERN.search(error_text):
        message = f"The model {ask.model} isn't there for {_KEY_OWNER_TEXT[owner]}. {_ANOTHER_MODEL[owner]}"
        failure = NeedsReconnect(message, code="model_unknown", platform_status=status)
    elif status == 413:
        outcome = "too_long"
        message = "The source is too long for the model."
        failure = Refused(message, code="too_long", platform_status=status)
    elif status == 429:
        outcome = "rate_limited"
        message = "The model's account has asked too often. It is asked again when its limit allows."
        failure = TryLater(message, code="model_rate_limited", after=retry_after, platform_status=status)
    elif status in {408, 409} or status >= 500:
        message = "The model's service is overloaded or out of order."
        failure = TryLater(message, code="model_unavailable", after=retry_after, platform_status=status)
    else:
        reason = " ".join((error.api_message or "no reason given").split())[:_MAX_VENDOR_CHARACTERS]
        message = f"The model's service declined the request with status {status}: {reason.rstrip('.')}."
        failure = Refused(message, code="model_request_declined", platform_status=status)
    record = _failed_call(ask, outcome, started, error.request_id or "", status)
    return accounted(failure, (record,) if keeps_record else ())


def _failed_call(
    ask: ModelRequest, outcome: str, started: float, request_id: str = "", http_status: int | None = None
) -> CallRecord:
    return unanswered_call(ask, outcome, request_id, http_status, latency_ms=milliseconds_since(started))
