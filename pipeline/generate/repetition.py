"""Whether a draft says again what the workspace has said of late, or copies its source instead of telling of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models.functions import Left

from config.core.database.prepared_queries import Prepared
from config.core.ids import encode
from pipeline import limits
from pipeline.engines.base import Check
from pipeline.engines.checks.grounded import remove_added_words
from pipeline.models import GeneratedItem
from pipeline.text.similarity import grams, jaccard, may_be_like, opening, plain_words
from pipeline.writers.approved_line_drafts import REPETITION

if TYPE_CHECKING:
    from uuid import UUID

    from django.db.models import QuerySet

    from pipeline.engines.base import Draft, SourceText
    from pipeline.models import Generation

COPYING: Final = "copying"
_TIMES_AS_LONG: Final = 10


def _newest(
    workspace: UUID, run: UUID | None, group: UUID | None, raw_item: UUID | None, *, test: bool
) -> QuerySet[Any, Any]:
    rows = (
        GeneratedItem.objects.of(workspace).filter(test=test, revision__gt=0, deleted_at=None).order_by("-id")
    )
    if run is not None:
        of_run = GeneratedItem.everywhere.filter(generation_id=run).values("variant_group")
        rows = rows.exclude(variant_group__in=of_run)
    if group is not None:
        rows = rows.exclude(variant_group=group)
    if raw_item is not None:
        rows = rows.exclude(raw_item_id=raw_item)
    words: QuerySet[Any, Any] = rows.annotate(words=Left("body", limits.REPETITION_CHARACTERS))
    return words.values("id", "words")[: limits.REPETITION_ITEMS]


_NEWEST: Final[Prepared[dict[str, Any]]] = Prepared(_newest, keeps_plan=False)


class OwnWords:
    """The newest items of the workspace, read once for all drafts of a run, when they are first needed.

    What was made of the same raw item, or belongs to the same group of variants, tells of the same thing by design.
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
        self._beside: dict[str, Any] = {
            "workspace": workspace_id,
            "test": test,
            "run": run_id,
            "group": group,
            "raw_item": raw_item_id,
        }
        self._is_verbatim = is_verbatim
        self._said: list[tuple[UUID, str]] | None = None

    @classmethod
    def beside_run(cls, run: Generation, *, is_verbatim: bool) -> OwnWords:
        """What the drafts of a run are compared with."""
        return cls(
            run.workspace_id,
            test=run.test,
            raw_item_id=run.raw_item_id,
            run_id=run.pk,
            is_verbatim=is_verbatim,
        )

    @classmethod
    def beside_item(cls, item: GeneratedItem, *, is_verbatim: bool) -> OwnWords:
        """What the words of an item are compared with that was made already."""
        return cls(
            item.workspace_id,
            test=item.test,
            raw_item_id=item.raw_item_id,
            group=item.variant_group,
            is_verbatim=is_verbatim,
        )

    def check(self, draft: Draft, source: SourceText, *, is_verbatim: bool = False) -> tuple[Check, ...]:
        """`repetition`, and `copying` for words that a model found.

        Words that were taken from a source say what it says: where two sources are alike a person decides, so that
        repetition is a warning for them. `is_verbatim` tells that of a draft whose writer could have asked a model.
        """
        is_verbatim = is_verbatim or self._is_verbatim
        fault = self._fault(remove_added_words(draft.body, draft))
        outcome = "warning" if is_verbatim else "failed"
        checks = [
            Check(REPETITION, "passed", "It repeats nothing of the newest items.")
            if fault is None
            else Check(REPETITION, outcome, fault)  # type: ignore[arg-type]  # one of the two words above
        ]
        if not is_verbatim:
            checks.append(_check_copying(draft, source))
        return tuple(checks)

    def _fault(self, body: str) -> str | None:
        said = self._read()
        begins = opening(body)
        for key, other in said[: limits.REPETITION_OPENINGS]:
            if begins and opening(other) == begins:
                return f"It begins like {encode('gen', key)}: \u201c{' '.join(begins)}\u201d."
        words, own = plain_words(body), None
        for key, other in said:
            theirs = plain_words(other)
            if not may_be_like(words, theirs):
                continue
            own = own or grams(body)
            likeness = jaccard(own, grams(other))
            if likeness > limits.REPETITION_LIKENESS:
                return f"It repeats {encode('gen', key)}: {likeness:.0%} of what both say is the same."
        return None

    def _read(self) -> list[tuple[UUID, str]]:
        if self._said is None:
            self._said = [(row["id"], row["words"]) for row in _NEWEST.ask(**self._beside)]
        return self._said


def _check_copying(draft: Draft, source: SourceText) -> Check:
    # A source that is ten times as long can't be copied whole.
    whole = source.text[: _TIMES_AS_LONG * max(len(draft.body), 1)]
    nearest = jaccard(grams(draft.body), grams(whole)) if len(source.text) == len(whole) else 0.0
    if nearest > limits.COPYING_LIKENESS:
        return Check(COPYING, "warning", f"It copies its source: {nearest:.0%} of what both say is the same.")
    return Check(COPYING, "passed", "It tells of its source in words of its own.")
