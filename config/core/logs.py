"""Structured logs: one line per event, with the request id, and with secrets redacted."""

from __future__ import annotations

import logging
import logging.config
import re
from typing import TYPE_CHECKING, Any

import structlog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from structlog.typing import EventDict, Processor, WrappedLogger

    _Replacement = tuple[re.Pattern[str], str]

# Names whose values are never logged, and patterns of secrets that are cut out anywhere: our own tokens, webhook
# secrets, bearer headers, and credentials or tokens inside addresses. Platforms add their own (`add_secrets`).
_SECRET_NAMES = re.compile(
    r"(?i)^(authorization|cookie|set-cookie|passwd|x-api-key|x-goog-api-key|model_key"
    r"|(?:(?!lease).*_)?(?:password|secret|token|api_?key|credentials))$"
)
_SECRET_PATTERNS: tuple[_Replacement, ...] = (
    (re.compile(r"cpk_(live|test)_[0-9A-Za-z]{4,}"), r"cpk_\1_[redacted]"),
    # Whoever knows one of these addresses may push, read, join or leave; a test compares them with `config/urls.py`.
    (
        re.compile(
            r"(/(?:hooks|feeds|media|invitations|notices|subscribe|u)/(?:[a-z]{2,8}/)?)[0-9A-Za-z_:-]{20,}"
        ),
        r"\1[redacted]",
    ),
    # The page of a workspace's feed; of exactly that length, because other sites have /posts/ too.
    (re.compile(r"(/posts/)[0-9A-Za-z_-]{22}(?![0-9A-Za-z_-])"), r"\1[redacted]"),
    (re.compile(r"whsec_[0-9A-Za-z+/=]{4,}"), "whsec_[redacted]"),
    (re.compile(r"(?i)\bbearer\s+[^\s\"',]+"), "Bearer [redacted]"),
    (re.compile(r"\bsk-[0-9A-Za-z_-]{8,}"), "sk-[redacted]"),
    # Google's keys, such as that of YouTube's Data API.
    (re.compile(r"\bAIza[0-9A-Za-z_-]{20,}"), "AIza[redacted]"),
    (re.compile(r"://[^/\s:@]*:[^/\s@]+@"), "://[redacted]@"),
    # Query parameters that authorize the caller: keys, tokens, and signatures of files at Amazon's, Google's and
    # Microsoft's stores. `;` ends an `&` that is escaped in HTML.
    (
        re.compile(
            r"(?i)([?&#;](?:[a-z_-]*(?:token|key|secret|signature|password|credential)|sig|auth|code|code_verifier"
            r"|state|upload_id)=)[^&\s\"'<>]+"
        ),
        r"\1[redacted]",
    ),
    # The first field of a form's body, which no separator precedes.
    (re.compile(r"(?i)\b((?:access_token|refresh_token|client_secret)=)[^&\s\"'<>]+"), r"\1[redacted]"),
)
# Every pattern needs one of these: most strings have none, and are searched only once.
_MAY_BE_SECRET = re.compile(r"[/=]|cpk_|whsec_|sk-|AIza|(?i:bearer)")
# Most strings of a line are no addresses: these are looked for only where there is a `/`.
_added_addresses: dict[str, _Replacement] = {}
_added_keys: dict[str, _Replacement] = {}


def add_secrets(*, addresses: Iterable[str] = (), keys: Iterable[str] = ()) -> None:
    """Cut out what these regular expressions match, but for their first group; each is added once.

    Raises `ValueError` for one without a group, and for that of an address without a `/`.
    """
    for form in addresses:
        if "/" not in form:
            message = f"The address {form} needs a /, or is a key."
            raise ValueError(message)
        _added_addresses[form] = _with_group(form)
    for form in keys:
        _added_keys[form] = _with_group(form)


def _with_group(form: str) -> _Replacement:
    pattern = re.compile(form)
    if not pattern.groups:
        message = f"The form {form} needs a group around what of it may be shown."
        raise ValueError(message)
    return pattern, r"\1[redacted]"


def redact(value: Any) -> Any:
    """Return the value with every secret in it replaced; containers are walked.

    An object whose representation holds a secret becomes that representation without it.
    """
    if isinstance(value, str):
        if _MAY_BE_SECRET.search(value):
            value = _without(_SECRET_PATTERNS, value)
        if "/" in value:
            value = _without(_added_addresses.values(), value)
        return _without(_added_keys.values(), value)
    if isinstance(value, dict):
        return {
            key: "[redacted]" if isinstance(key, str) and _SECRET_NAMES.match(key) else redact(member)
            for key, member in value.items()
        }
    if isinstance(value, list | tuple):
        return type(value)(redact(member) for member in value)
    if value is None or isinstance(value, bool | int | float):
        return value
    # Any other object is logged by its representation: that of a request names its address.
    representation = repr(value)
    cleaned = redact(representation)
    return value if cleaned == representation else cleaned


def _without(replacements: Iterable[_Replacement], value: str) -> str:
    for pattern, replacement in replacements:
        # To search costs a tenth of a replacement that finds nothing.
        if pattern.search(value):
            value = pattern.sub(replacement, value)
    return value


def _redact_event(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    cleaned: EventDict = redact(dict(event))
    return cleaned


def configure(*, level: str, as_json: bool) -> None:
    """Set up structlog and the standard library's logging with the same processors."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _redact_event,
    ]
    renderer: Processor = (
        structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=False)
    )
    structlog.configure(
        # Lines below the level are dropped before redaction, which costs most.
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "structured": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "foreign_pre_chain": shared,
                    "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
                }
            },
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "structured"}},
            "root": {"handlers": ["stderr"], "level": level},
            "loggers": {
                # Otherwise every claim, every connection and every one too many to keep would be a line.
                "urllib3": {"level": "WARNING"},
                "urllib3.connectionpool": {"level": "ERROR"},
                "celery": {"level": "WARNING"},
                "kombu": {"level": "WARNING"},
                "amqp": {"level": "WARNING"},
                "django.request": {"level": "ERROR"},
            },
        }
    )
