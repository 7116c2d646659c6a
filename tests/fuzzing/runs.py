"""One run of invented requests: what it sends, how answers are judged, what it finds. Test modules load it late."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import FailureGroup
from schemathesis.openapi.checks import RejectedPositiveData
from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance

from config.api_docs.views import build_strict_openapi
from config.core.api.jsonio import dump
from tests.fuzzing.conftest import Newsroom, undone
from tests.sizes import size

if TYPE_CHECKING:
    from schemathesis import Case, CheckContext, Response
    from schemathesis.schemas import APIOperation, BaseSchema

SEED: Final = 20_261_120


@dataclass(frozen=True)
class Unknowable:
    """A refusal of good input that the document can't foretell: field and code of each entry of its `detail`."""

    field: str
    code: str
    reason: str
    operation: str | None = None


UNKNOWABLE: Final = (
    Unknowable("", "invalid_cursor", "A cursor is opaque and signed; an invented one is never ours."),
    Unknowable(
        ".*", "nul_character", "Text without NUL can be told by a pattern, but by one on every text there is."
    ),
    Unknowable(
        r"(source|sources\[\d+\]|persona|outlets\[\d+\]|overrides\.\w+|assets\[\d+\]\.id)",
        "unknown_(source|persona|outlet|asset)",
        "Some ids stay invented; which exist is the database's knowledge.",
    ),
    Unknowable("generated_item", "unknown_item", "Some ids stay invented.", "POST /v1/recurrences"),
    Unknowable(
        "file",
        "unsupported_file|empty_file|damaged|too_many_pixels",
        "What a file is stands in its bytes.",
        "POST /v1/uploads",
    ),
    Unknowable(
        "file", "required", "The test's own transport leaves out a file without bytes.", "POST /v1/uploads"
    ),
    Unknowable(
        r"media\[\d+\]\.upload", "unknown_upload", "Which uploads there are is the database's knowledge."
    ),
    Unknowable(
        "Idempotency-Key", "idempotency_key_reused", "A journey may invent the same key for two requests."
    ),
    Unknowable("from|to", "invalid|empty_range|range_too_long", "Two dates, their order and their distance."),
    Unknowable("from|to", "conflict", "Two names of one bound.", "GET /v1/generated"),
    Unknowable("after", "conflicting", "Two names of one cursor.", "GET /v1/events"),
    Unknowable("url", "address_alone", "An address needs words beside it: a title, a body or files."),
    Unknowable(
        r"tz|timezone|config\.cadence\.timezone",
        "invalid|unknown_timezone",
        "The names of time zones are the tz database's.",
    ),
    Unknowable(
        r"(.*\.)?(publish_at|local_time|starts_at)", "past|too_far", "What is past depends on the clock."
    ),
    Unknowable(
        r"storyboard(\..*)?",
        "(?!required$|invalid_type$|unknown_field$).*",
        "A change of a storyboard is held against the film that there is.",
        "PATCH /v1/generated/{id}/storyboard",
    ),
    Unknowable("local_time", "invalid|gap", "Which days a month has, and which hours the clocks skip."),
    Unknowable(r"(config\.)?mapping\..*", "invalid", "What JMESPath reads is a grammar's, not a pattern's."),
    Unknowable(
        r"(config\.verification\.)?secret", "invalid", "Some kinds of secrets are base64 of so many bytes."
    ),
    Unknowable(
        r"(.*\.)?url|links\[\d+\]", "invalid_address", "A host's normal form may hold what ends a host."
    ),
    Unknowable(
        r"config(\.(url|sitemap))?",
        "(?!required$|invalid$|invalid_type$|unknown_field$|too_long$|out_of_range$|too_many$|one_of$).*",
        "What a source answers to a preview is the world's knowledge.",
        "POST /v1/sources/preview",
    ),
    Unknowable(
        r"config(\..*)?",
        ".*",
        "A change of `config` is held against the type that the source already has.",
        "PATCH /v1/sources/{id}",
    ),
    Unknowable(
        r"config(\.\w+)?", "source_unavailable", "What an instance can bring in is its operator's affair."
    ),
    Unknowable(
        r"config\.item_selector",
        "selector_unreadable",
        "What a selector may be is a grammar's, not a pattern's.",
    ),
    Unknowable("q", "invalid", "Which texts hold a word is told by Unicode's tables, not by a pattern."),
    Unknowable(
        r"config\.url",
        "not_a_place",
        "Which addresses of YouTube's lead to a channel or a video is YouTube's grammar.",
    ),
    Unknowable("items_least", "invalid", "The least and the most of a digest belong together."),
    Unknowable(
        r"content(\..*)?",
        ".*",
        "A change of `content` is held against the bucket that the item already has.",
        "PATCH /v1/generated/{id}",
    ),
)


_CURSORS: Final = ("cursor", "after")


class Run:
    """What the run stands on, and what it finds: each kind of finding once, with the request that shows it."""

    def __init__(self, newsroom: Newsroom) -> None:
        self.newsroom = newsroom
        self.cases: Counter[str] = Counter()
        self.excused: Counter[str] = Counter()
        self.findings: dict[tuple[str, ...], str] = {}
        self.succeeded: set[str] = set()
        self._asked_without_token: set[str] = set()

    def send(self, case: Case) -> Response:
        """The request with ids that exist, and with the token."""
        for name in ("path_parameters", "query", "body"):
            given = getattr(case, name)
            known = self.newsroom.known(given, repr(sorted((case.headers or {}).items())))
            if known != given:
                setattr(case, name, known)
        if case.meta.generation.mode.is_positive and crc32(repr(case.query).encode()) % 8:
            # An invented cursor hides all that stands beside it; every eighth stays.
            case.query = {name: value for name, value in (case.query or {}).items() if name not in _CURSORS}
        self.cases[case.meta.phase.name.value] += 1
        response = case.call(headers=self.newsroom.headers)
        self.newsroom.remember(response.text)
        if 200 <= response.status_code < 300:
            self.succeeded.add(case.operation.label)
        return response

    def ask_all(self, operation: APIOperation) -> None:
        """What only a row in one state allows, and no invention met such a row: asked of every row until one does."""
        if re.findall(r"{(\w+)}", operation.path) != ["id"]:
            return
        for known in chain.from_iterable(self.newsroom.ids.values()):
            case = operation.Case(path_parameters={"id": known})
            with undone():
                response = case.call(headers=self.newsroom.headers)
            if 200 <= response.status_code < 300:
                self.succeeded.add(operation.label)
                return

    def judge(self, case: Case, response: Response, **more: Any) -> None:
        excluded = [positive_data_acceptance]
        # It asks again without and with a wrong token; once for each operation is enough.
        if case.operation.label in self._asked_without_token:
            excluded.append(ignored_auth)
        elif 200 <= response.status_code < 300:
            self._asked_without_token.add(case.operation.label)
        try:
            case.validate_response(
                response,
                additional_checks=[self.good_input_is_taken, unknown_parameters_are_refused],
                excluded_checks=excluded,
                headers=self.newsroom.headers,
                transport_kwargs={"headers": self.newsroom.headers},
                **more,
            )
        except FailureGroup as group:
            # A fault breaks other promises too.
            for failure in group.exceptions if response.status_code < 500 else group.exceptions[:1]:
                self._note(case, response, failure)

    def good_input_is_taken(self, context: CheckContext, response: Response, case: Case) -> None:
        try:
            positive_data_acceptance(context, response, case)
        except RejectedPositiveData:
            if response.status_code >= 500:
                raise
            reasons = [_reason(case.operation.label, detail) for detail in response.json()["detail"]]
            if None in reasons:
                raise
            self.excused.update(reason for reason in set(reasons) if reason)

    def _note(self, case: Case, response: Response, failure: Exception) -> None:
        lines = [line for line in str(failure).splitlines() if line.strip()]
        title = getattr(failure, "title", type(failure).__name__)
        kind = (case.operation.label, title, re.sub(r"[0-9a-z]{26}", "*", " ".join(lines)[:90]))
        if isinstance(failure, RejectedPositiveData):
            kind = (
                case.operation.label,
                title,
                str([(one["field"], one["code"]) for one in response.json()["detail"]]),
            )
        if kind not in self.findings:
            request = case.as_curl_command(headers=self.newsroom.headers)
            answer = f"{response.status_code} {response.text[:600]}"
            self.findings[kind] = f"{failure}\n  {request[:1500]}\n  {answer}"

    def summary(self) -> str:
        cases = ", ".join(f"{number} {phase}" for phase, number in self.cases.items())
        excused = "".join(
            f"\n  {number} good requests refused: {reason}" for reason, number in self.excused.items()
        )
        return f"{self.cases.total()} cases ({cases}), {len(self.findings)} findings{excused}"

    def report(self) -> str:
        told = [f"{' · '.join(kind)}\n  {text}" for kind, text in self.findings.items()]
        return f"{len(told)} findings:\n\n" + "\n\n".join(told)


def _reason(operation: str, detail: dict[str, Any]) -> str | None:
    for one in UNKNOWABLE:
        is_here = one.operation in (None, operation)
        if (
            is_here
            and re.fullmatch(one.code, detail["code"])
            and re.fullmatch(one.field, detail["field"] or "", re.DOTALL)
        ):
            return one.reason
    return None


def unknown_parameters_are_refused(context: CheckContext, response: Response, case: Case) -> None:
    """The run's own check takes them for harmless; here a mistyped filter must never return everything."""
    del context
    # One without a name and a value leaves no trace in the address that is asked.
    sent = {name for name, value in (case.query or {}).items() if name or value}
    unknown = sent - {parameter.name for parameter in case.operation.query}
    assert not (unknown and response.status_code < 400), f"Unknown parameters were taken: {sorted(unknown)}"


CONFIG: Final = {
    "seed": SEED,
    # The requests of a finding are shown whole: all of their data is made up.
    "output": {"sanitization": {"enabled": False}},
    "generation": {"deterministic": True, "max-examples": size(40, 130), "no-shrink": True},
    "phases": {"coverage": {"generate-duplicate-query-parameters": True}},
    "checks": {
        # 404: an invented id; 409: the object's state; 412: an invented If-Match; 422: a key of another request, which
        # is told before the body is read.
        "positive_data_acceptance": {"expected-statuses": ["2xx", "304", "404", "409", "412"]},
        "negative_data_rejection": {
            "expected-statuses": ["400", "401", "404", "405", "409", "412", "413", "415", "422"]
        },
    },
}


def _closed(document: dict[str, Any]) -> dict[str, Any]:
    """The same with every object's fields named in full: an answer may hold nothing that isn't documented."""
    for schema in document["components"]["schemas"].values():
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
    return document


def load_document(application: Any) -> BaseSchema:
    document = _closed(json.loads(dump(build_strict_openapi())))
    loaded = schemathesis.openapi.from_dict(document, config=SchemathesisConfig.from_dict(CONFIG))
    loaded.app = application
    return loaded
