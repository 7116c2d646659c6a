"""Decides which failures of a run another try can mend, and names the remedy for the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from config.core.errors import Conflict
from pipeline import plugins
from pipeline.engines.base import Engine
from pipeline.generate.model.keys import workspace_has_key
from pipeline.models import GeneratedItem, GeneratedItemStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from accounts.models import Workspace

TRY_AGAIN: Final = "Try it again."
ERASED: Final = "It was deleted with the content."
"""Replaces a message that may quote erased content."""
_PUSH_MORE_TEXT: Final = "Push the item again with more text, or give the workspace a key for a model, which writes in words of its own."
_UPLOAD_OTHER_FILES: Final = "Upload the files again in a format that is listed, and push the item with them."
_MAKE_OTHER_VARIANT: Final = (
    "Without a model the same words are made each time. Make another variant, or another format of it; if "
    "none works, tell the operator."
)


@dataclass(frozen=True)
class Rule:
    """The rule for one kind of failure."""

    action: str
    """The remedy, as a sentence for a person."""
    retryable: bool = False
    """Whether another try by the same writer can end differently."""
    with_model: bool = False
    """Whether another try by a model can, because its words differ each time."""


RULES: Final[Mapping[str, Rule]] = {
    # About the words: without a model they are the same each time.
    "nothing_to_say": Rule(_PUSH_MORE_TEXT, with_model=True),
    "no_more_variants": Rule(_PUSH_MORE_TEXT, with_model=True),
    "checks_failed": Rule(_MAKE_OTHER_VARIANT, with_model=True),
    "too_few_stories": Rule("Have the series make it again when there are more stories.", with_model=True),
    "too_near": Rule("Add topics or angles to the lane, or give them more notes.", with_model=True),
    "needs_ai": Rule("Give the workspace a key for a model, or the persona approved lines.", with_model=True),
    **dict.fromkeys(
        (
            "bad_film",
            "bad_storyboard",
            "does_not_fit",
            "nothing_said",
            "wrong_count",
            "wrong_length",
            "words_beyond_the_film",
            "words_out_of_order",
            "words_too_fast",
        ),
        Rule(_MAKE_OTHER_VARIANT, with_model=True),
    ),
    # About the source, the topic or the persona.
    "source_deleted": Rule("Push the content again: it was deleted."),
    "no_source": Rule("Push the content again: what it was to be made of was deleted."),
    "topic_deleted": Rule("Choose another topic: this one was deleted."),
    "persona_deleted": Rule("Choose another persona for the source: this one was deleted."),
    **dict.fromkeys(
        (
            "no_footage",
            "no_sound",
            "no_transcript",
            "no_video",
            "transcript_too_long",
            "unusable_asset",
            "unusable_picture",
        ),
        Rule(_UPLOAD_OTHER_FILES),
    ),
    # About the instance: it may be fixed at any time, and nothing here would notice.
    "missing_glyphs": Rule(
        "Ask the operator to install a font for this script, then try again.", retryable=True
    ),
    **dict.fromkeys(
        ("model_key_missing", "model_key_refused", "model_unknown", "model_unpaid"),
        Rule("Correct the model's key, or ask the operator to, then try again.", retryable=True),
    ),
    "model_request_declined": Rule(
        "Try it again. If that doesn't help, the operator has to choose another model or gateway.",
        retryable=True,
    ),
    "too_long": Rule(
        "Push it again with less text, or ask the operator for a model that takes more, then try again.",
        retryable=True,
    ),
    "no_space": Rule("Ask the operator to free disk space, then try again.", retryable=True),
}
"""Rules by error code. A failure whose code isn't here may pass, and can be tried again."""
_RETRYABLE: Final = Rule(TRY_AGAIN, retryable=True, with_model=True)


def error_of(code: str, message: str, stage: str, *, has_model: bool) -> dict[str, Any]:
    """Return a failure as it is stored and shown, with its remedy."""
    rule = RULES.get(code, _RETRYABLE)
    is_retryable = is_mendable(code, has_model=has_model)
    return {
        "code": code,
        "message": message,
        "stage": stage,
        "retryable": is_retryable,
        "action": TRY_AGAIN if is_retryable and not rule.retryable else rule.action,
    }


def without_words(error: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the failure as it is stored after the content that its message may quote was erased."""
    return None if error is None else {**error, "message": ERASED}


def is_mendable(code: str, *, has_model: bool) -> bool:
    """Return whether another try can end differently."""
    rule = RULES.get(code, _RETRYABLE)
    return rule.retryable or (has_model and rule.with_model)


def is_final(error: Mapping[str, Any] | None) -> bool:
    """Return whether the failure says that no further try helps.

    A failure that was stored by an early release doesn't say so, and may be retried.
    """
    return error is not None and error.get("retryable") is False


def current_errors(workspace: Workspace, failed: Mapping[UUID, Any]) -> dict[UUID, Any]:
    """Return the errors of failed items, by id; one that was final is retryable if its reason is gone.

    A reason is gone after a revision of the source, a change of the persona, a newer engine, or, for failures
    that a model can mend, once the workspace has a model. Nothing is queried if no error is final.
    """
    final = {key: error for key, error in failed.items() if is_final(error)}
    if not final:
        return dict(failed)
    has_model = workspace_has_key(workspace)
    changed = set(_changed_since(final))
    current = dict(failed)
    for key, error in final.items():
        if key in changed or (has_model and is_mendable(error["code"], has_model=True)):
            current[key] = {**error, "retryable": True, "action": TRY_AGAIN}
    return current


def _changed_since(keys: Iterable[UUID]) -> list[UUID]:
    """Return the items whose source, persona or engine has changed since they failed."""
    versions = {engine.name: engine.version for engine in plugins.every("engines", Engine)}
    rows = GeneratedItem.everywhere.filter(pk__in=list(keys)).values_list(
        "pk",
        "engine_output",
        "engine_version",
        "generation__raw_version",
        "raw_item__content_version",
        "generation__persona_version",
        "persona__version",
    )
    return [
        key
        for key, name, engine, raw, raw_now, persona, persona_now in rows
        if raw != raw_now or (persona is not None and persona != persona_now) or engine != versions.get(name)
    ]


def with_current_errors(workspace: Workspace, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return rows of generated items with their errors as `current_errors` gives them."""
    current = current_errors(
        workspace, {row["id"]: row["error"] for row in rows if row["status"] == GeneratedItemStatus.FAILED}
    )
    return [{**row, "error": current[row["id"]]} if row["id"] in current else row for row in rows]


def current_error(workspace: Workspace, item: GeneratedItem) -> dict[str, Any] | None:
    """Return the error of one item as `current_errors` gives it, or `None` if it hasn't failed."""
    if item.status != GeneratedItemStatus.FAILED:
        return None
    error: dict[str, Any] | None = current_errors(workspace, {item.pk: item.error})[item.pk]
    return error


def can_variant_differ(error: Mapping[str, Any] | None) -> bool:
    """Return whether a final failure is about the words alone, so that another variant may pass."""
    return (
        error is not None
        and is_final(error)
        and RULES.get(error["code"], _RETRYABLE).action == _MAKE_OTHER_VARIANT
    )


def refuse_final(error: Mapping[str, Any] | None) -> None:
    """Raise `Conflict`, with the remedy, if the error says that no further try helps."""
    if error is not None and is_final(error):
        message = f"Trying again would end the same: {error['message']} {error.get('action', '')}".strip()
        raise Conflict.because(code="not_retryable", message=message)
