"""Checks whether a draft repeats the workspace's recent items, or copies its source instead of retelling it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models.functions import Left

from config.core.database.prepared_queries import Prepared
from config.core.ids import encode
from pipeline import limits
from pipeline.engines.base import Check
from pipeline.engines.checks.grounded import remove_added_words
from pipeline.models import GeneratedItem
from pipeline.text.similarity import character_runs, jaccard, may_be_like, opening_words, plain_words
from pipeline.writers.approved_line_drafts import REPETITION

if TYPE_CHECKING:
    from uuid import UUID

    from django.db.models import QuerySet

    from pipeline.engines.base import Draft, SourceText
    from pipeline.models import Generation

COPYING: Final = "copying"
_MAX_LENGTH_RATIO: Final = 10
"""A source that is longer than the draft by more than this factor can't be copied as a whole, and isn't compared."""


def _newest(
    workspace: UUID, run: UUID | None, group: UUID | None, raw_item: UUID | None, *, test: bool
) -> QuerySet[Any, Any]:
    """Return the workspace's newest items with the beginning of their text.

    Items of the named run, variant group and raw item are left out.
    """
    rows = (
        GeneratedItem.objects.of(workspace).filter(test=test, revision__gt=0, deleted_at=None).order_by("-id")
    )
    if run is not None:
        groups_of_run = GeneratedItem.everywhere.filter(generation_id=run).values("variant_group")
        rows = rows.exclude(variant_group__in=groups_of_run)
    if group is not None:
        rows = rows.exclude(variant_group=group)
    if raw_item is not None:
        rows = rows.exclude(raw_item_id=raw_item)
    rows_with_text: QuerySet[Any, Any] = rows.annotate(words=Left("body", limits.REPETITION_CHARACTERS))
    return rows_with_text.values("id", "words")[: limits.REPETITION_ITEMS]


_NEWEST: Final[Prepared[dict[str, Any]]] = Prepared(_newest, keeps_plan=False)


class OwnWords:
    """The newest items of the workspace, read once for all drafts of a run, when first needed.

    Items of the same raw item, run or variant group are left out, because they tell of the same thing by
    design.
    """

    def __init__(
        self,
        workspace_id: UUID,
        *,
        test: bool,
        raw_item_id: UUID | None,
        run_id: UUID | None = None,
        group: UUID | None = None,
        is_verbatim: bool,
    ) -> None:
        """Read nothing yet; `is_verbatim` says that the drafts are words of the source."""
        self._lookup: dict[str, Any] = {
            "workspace": workspace_id,
            "test": test,
            "run": run_id,
            "group": group,
            "raw_item": raw_item_id,
        }
        self._is_verbatim = is_verbatim
        self._recent_texts: list[tuple[UUID, str]] | None = None

    @classmethod
    def for_run(cls, run: Generation, *, is_verbatim: bool) -> OwnWords:
        """Return the items that the drafts of a run are compared with."""
        return cls(
            run.workspace_id,
            test=run.test,
            raw_item_id=run.raw_item_id,
            run_id=run.pk,
            is_verbatim=is_verbatim,
        )

    @classmethod
    def for_item(cls, item: GeneratedItem, *, is_verbatim: bool) -> OwnWords:
        """Return the items that the words of an existing item are compared with."""
        return cls(
            item.workspace_id,
            test=item.test,
            raw_item_id=item.raw_item_id,
            group=item.variant_group,
            is_verbatim=is_verbatim,
        )

    def check(self, draft: Draft, source: SourceText, *, is_verbatim: bool = False) -> tuple[Check, ...]:
        """Return the check `repetition`, and `copying` for words that a model wrote.

        Repetition is only a warning for words that are taken verbatim from a source, because a person decides
        if two sources are alike. `is_verbatim` says so of one draft by a writer that usually asks a model.
        """
        is_verbatim = is_verbatim or self._is_verbatim
        fault = self._find_repetition(remove_added_words(draft.body, draft))
        outcome = "warning" if is_verbatim else "failed"
        checks = [
            Check(REPETITION, "passed", "It repeats nothing of the newest items.")
            if fault is None
            else Check(REPETITION, outcome, fault)  # type: ignore[arg-type]  # one of the two words above
        ]
        if not is_verbatim:
            checks.append(_check_copying(draft, source))
        return tuple(checks)

    def _find_repetition(self, body: str) -> str | None:
        """Return the sentence that says which item the text repeats, or `None` if it repeats none."""
        recent_texts = self._load_recent_texts()
        first_words = opening_words(body)
        for key, other in recent_texts[: limits.REPETITION_OPENINGS]:
            if first_words and opening_words(other) == first_words:
                return f"It begins like {encode('gen', key)}: \u201c{' '.join(first_words)}\u201d."
        own_words, own_grams = plain_words(body), None
        for key, other in recent_texts:
            other_words = plain_words(other)
            if not may_be_like(own_words, other_words):
                continue
            own_grams = own_grams or character_runs(body)
            likeness = jaccard(own_grams, character_runs(other))
            if likeness > limits.REPETITION_LIKENESS:
                return f"It repeats {encode('gen', key)}: {likeness:.0%} of what both say is the same."
        return None

    def _load_recent_texts(self) -> list[tuple[UUID, str]]:
        if self._recent_texts is None:
            self._recent_texts = [(row["id"], row["words"]) for row in _NEWEST.ask(**self._lookup)]
        return self._recent_texts


def _check_copying(draft: Draft, source: SourceText) -> Check:
    likeness = 0.0
    if len(source.text) <= _MAX_LENGTH_RATIO * max(len(draft.body), 1):
        likeness = jaccard(character_runs(draft.body), character_runs(source.text))
    if likeness > limits.COPYING_LIKENESS:
        return Check(
            COPYING, "warning", f"It copies its source: {likeness:.0%} of what both say is the same."
        )
    return Check(COPYING, "passed", "It tells of its source in words of its own.")
