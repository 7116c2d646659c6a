"""Decides on one item or several, each in the version that the person saw, and undoes decisions."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django import forms
from django.contrib import messages
from django.core import signing
from django.http import HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.pages import kept_forms
from accounts.pages.act_messages import offer_undo
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from config.core.errors import AppError, Invalid
from config.core.ids import decode, encode
from config.core.states import Overtaken
from pipeline import limits
from pipeline.dashboard import counts
from pipeline.pages.items import next_actions, slot_times
from pipeline.pages.items.forms import AT, NEXT, NOW, REASON_CHARACTERS, WhenForm
from pipeline.pages.review import stories
from pipeline.pages.review.forms import QueueFilter
from pipeline.pages.review.page import versions_in
from pipeline.pages.review.refusals import describe_newer_state, describe_refusals
from pipeline.review import bulk_review
from pipeline.review import undo as undoing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date
    from uuid import UUID

    from django.http import HttpRequest

    from pipeline.models import GeneratedItem

UNDO_GRACE: Final = timedelta(seconds=10)
"""The wait before a post that is published now is sent, so that a mistake that is seen at once can be undone."""
CONTENT_LIST: Final = "content"
"""The value of the POST field `list` for decisions that were made in Content instead of the queue."""
_SALT: Final = "review.undo"
_UNDO_SECONDS: Final = 24 * 3600


class _UndoNote(NamedTuple):
    """The content of a valid note: the item, and its state before the decision."""

    item_id: UUID
    former: dict[str, Any]


class DecideForm(WhenForm):
    """Validates an act with its reason, time or hint; the view parses the field `items`."""

    act = forms.ChoiceField(choices=[(name, name) for name in sorted(bulk_review.ACTS)])
    reason = forms.CharField(required=False, max_length=REASON_CHARACTERS)
    said = forms.CharField(required=False, max_length=REASON_CHARACTERS)
    """A ready-made reason, which is used if none was typed."""
    hint = forms.CharField(required=False, max_length=limits.HINT_CHARACTERS)

    def __init__(self, *args: Any, zone: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.zone = zone
        self.fields["when"].required = False

    def to_review_input(
        self, place: Place, shown_versions: Mapping[UUID, int]
    ) -> bulk_review.BulkReviewInput:
        """Return the input of `bulk_review`; `shown_versions` are those of the other variants that were shown."""
        now = utc_now()
        values = self.cleaned_data
        timing = self.timing()
        if values["act"] == bulk_review.PUBLISH and values["when"] not in {NEXT, AT}:
            timing = replace(timing, publish_at=now + UNDO_GRACE)
        return bulk_review.BulkReviewInput(
            workspace=place.workspace,
            by=place.user.email,
            now=now,
            reason=values["reason"] or values["said"],
            wish=timing,
            hint=values["hint"],
            shown=shown_versions,
        )


@workspace_page("edit", methods=("POST",))
def review_decide(request: HttpRequest, place: Place) -> HttpResponse:
    """Decide on the items in the POST field `items`.

    The field holds ids with versions, such as `gen_…:3`, separated by commas. The other variants among which these
    were chosen follow after a bar. A form that is sent twice decides once.
    """
    form = DecideForm(request.POST, zone=place.workspace.timezone)
    versions, shown_versions = _parse_posted_items(request.POST)
    try:
        if not form.is_valid():
            message = " ".join(str(line) for lines in form.errors.values() for line in lines)
            raise Invalid.one(None, "form", message)
        if not versions:
            raise Invalid.one("items", "required", _("Choose at least one item."))
        if not kept_forms.is_first_sending(request):
            raise Invalid.one(None, "repeated", _("Already sent."))
        items_seen = _items_with_versions(place, versions)
        review_input = form.to_review_input(place, shown_versions)
        decisions = bulk_review.decide(form.cleaned_data["act"], items_seen, review_input)
    except AppError as error:
        kept_forms.allow_sending_again(request)
        return _refusal_response(request, place, error)
    if all(decision.error is not None for decision in decisions):
        kept_forms.allow_sending_again(request)
    return _decision_response(
        request, place, form.cleaned_data, decisions, missing=len(versions) - len(items_seen)
    )


@workspace_page("edit", methods=("POST",))
def review_undo(request: HttpRequest, place: Place) -> HttpResponse:
    """Undo decisions; the POST field `undo` holds signed notes of the former states, separated by spaces.

    Redirects to the calendar's week `week`, to the page of the item `item`, or to the list of the decision.
    """
    restored_items, errors = undo_all(place, request.POST.get("undo", "").split())
    count = len(restored_items)
    text = ngettext("Undone.", "%(count)d decisions undone.", count) % {"count": count}
    lines = [*([text] if restored_items else []), *dict.fromkeys(errors)] or [_("Nothing to undo.")]
    if is_part(request):
        status = 200 if restored_items else 409
        return JsonResponse(
            {
                "toast": render_toast(request, " ".join(lines), is_good=not errors),
                "items": [encode("gen", item.pk) for item in restored_items],
                "to_review": counts.count_to_review(place.workspace.pk).text,
                "error": " ".join(lines) if not restored_items else "",
            },
            status=status,
        )
    (messages.error if errors or not restored_items else messages.success)(request, " ".join(lines))
    if request.POST.get("week"):
        return redirect(f"{place.url_of('calendar')}?{urlencode({'on': request.POST['week']})}")
    item_id = decode("gen", request.POST.get("item", ""))
    if item_id is not None:
        return redirect(place.url_of("item_page", gen=item_id))
    return redirect(_queue_address(request, place, at=restored_items[0].pk if restored_items else None))


def undo_all(place: Place, notes: Sequence[str]) -> tuple[list[GeneratedItem], list[str]]:
    """Undo the decisions of these notes, at most `bulk_review.AT_ONCE`.

    Returns the restored items, and a sentence for each note that couldn't be undone.
    """
    now = utc_now()
    errors: list[str] = []
    restored_items: list[GeneratedItem] = []
    for note in notes[: bulk_review.AT_ONCE]:
        undo_note = _load_note(place, note)
        item = _find_items(place, [undo_note.item_id]).get(undo_note.item_id) if undo_note else None
        if undo_note is None or item is None:
            errors.append(_("This can't be undone any more."))
            continue
        try:
            restored_items.append(undoing.undo(item, undo_note.former, by=place.user.email, now=now))
        except Overtaken:
            errors.append(describe_newer_state(place, item))
        except AppError as error:
            errors.append(str(error))
    return restored_items, errors


def offer_undo_in_list(
    request: HttpRequest, place: Place, message: str, notes: Sequence[str], *, is_good: bool = True
) -> None:
    """Add a message with a button that undoes the decisions and leads back to the same list."""
    fields = {"undo": " ".join(notes)} | {
        name: request.POST[name] for name in ("list", "query") if request.POST.get(name)
    }
    offer_undo(request, message, place.url_of("review_undo"), fields, is_good=is_good)


def offer_undo_of(
    request: HttpRequest,
    place: Place,
    message: str,
    decision: bulk_review.Decided,
    *,
    week: date | None = None,
) -> None:
    """Add a message with an undo that leads back to the item's page or, with `week`, to that week's calendar."""
    fields = {"undo": note_of(place, decision), "item": encode("gen", decision.item.pk)}
    if week is not None:
        fields["week"] = week.isoformat()
    offer_undo(request, message, place.url_of("review_undo"), fields)


def note_of(place: Place, decision: bulk_review.Decided) -> str:
    """Return a signed note of the state before a decision, which undoes the decision.

    The note names the workspace and is signed, so that nobody can forge one or use one in another workspace.
    """
    item_id = encode("gen", decision.item.pk)
    note = {"ws": place.workspace.public_id, "gen": item_id, "former": decision.former}
    return signing.dumps(note, salt=_SALT, compress=True)


def _load_note(place: Place, note: str) -> _UndoNote | None:
    """Return the content of a note, or `None` if it is forged, older than a day or another workspace's."""
    try:
        payload = signing.loads(note, salt=_SALT, max_age=_UNDO_SECONDS)
    except signing.BadSignature:
        return None
    key = decode("gen", payload["gen"])
    if key is None or payload["ws"] != place.workspace.public_id:
        return None
    return _UndoNote(key, payload["former"])


def _find_items(place: Place, keys: Sequence[UUID]) -> dict[UUID, GeneratedItem]:
    """Return the workspace's items with these ids, by id, with the related rows that a decision reads."""
    rows = stories.reviewable_items(place).select_related("workspace", "raw_item", "generation")
    return {row.pk: row for row in rows.defer("workspace__model_key").filter(pk__in=keys)}


def _items_with_versions(place: Place, versions: Mapping[UUID, int]) -> list[tuple[GeneratedItem, int]]:
    """Return the items that still exist, by variant, each with the version that the person saw."""
    items_by_id = _find_items(place, list(versions))
    items_seen = [(items_by_id[key], version) for key, version in versions.items() if key in items_by_id]
    # The first of several variants is published, in whatever order the list had them.
    return sorted(items_seen, key=lambda item_seen: item_seen[0].variant_index)


def _parse_posted_items(posted: QueryDict) -> tuple[dict[UUID, int], dict[UUID, int]]:
    """Return the versions of the items to decide on, and of the other variants that were shown.

    The field `also`, the rest of a story, counts only if `whole` is ticked.
    """
    values = posted.getlist("items") + (posted.getlist("also") if posted.get("whole") else [])
    chosen_tokens: list[str] = []
    other_tokens: list[str] = []
    for value in values:
        chosen, _bar, others = value.partition("|")
        chosen_tokens += chosen.split(",")
        other_tokens += others.split(",")
    return versions_in(chosen_tokens), versions_in(other_tokens)


def _decision_response(
    request: HttpRequest,
    place: Place,
    form_data: Mapping[str, Any],
    decisions: Sequence[bulk_review.Decided],
    *,
    missing: int,
) -> HttpResponse:
    """Return the response to decisions: a redirect with messages, or JSON for the page's script.

    `missing` counts the chosen items that were deleted meanwhile.
    """
    done = [decision for decision in decisions if decision.error is None]
    refused = [decision for decision in decisions if decision.error is not None]
    failures = _describe_failures(place, decisions, missing)
    text, is_all_sent = _describe_done(place, form_data, done)
    notes = [note_of(place, decision) for decision in done]
    if is_part(request):
        first_error = decisions[0].error if decisions else None
        failure_status = first_error.status if first_error is not None else 409
        message = " ".join([text, *failures]).strip()
        return JsonResponse(
            {
                "toast": render_toast(request, message, place, notes, is_good=is_all_sent and not failures),
                "error": " ".join(failures),
                "failed": [encode("gen", decision.item.pk) for decision in refused],
                "decided": [encode("gen", decision.item.pk) for decision in done],
                "undo": " ".join(notes),
                "to_review": counts.count_to_review(place.workspace.pk).text,
            },
            status=200 if done else failure_status,
        )
    if done:
        offer_undo_in_list(request, place, text, notes, is_good=is_all_sent)
    for line in failures:
        messages.error(request, line)
    first = next(iter(done or decisions), None)
    stays = form_data["act"] in {bulk_review.CHOOSE, bulk_review.ANOTHER} or "stay" in request.POST
    at = first.item.pk if first is not None and (stays or not done) else None
    return redirect(_queue_address(request, place, at=at))


def _describe_failures(place: Place, decisions: Sequence[bulk_review.Decided], missing: int) -> list[str]:
    """Return the sentences about refused and missing items; one says so if there was nothing to decide on."""
    refused = [decision for decision in decisions if decision.error is not None]
    refusals = [(decision.item, _refusal_text(place, decision)) for decision in refused]
    failures = describe_refusals(refusals, is_single=len(decisions) == 1)
    if missing:
        failures.append(_("Deleted rows were skipped."))
    return failures if failures or decisions else [_("Nothing to decide.")]


def _refusal_text(place: Place, decision: bulk_review.Decided) -> str:
    if isinstance(decision.error, Overtaken):
        return describe_newer_state(place, decision.item)
    return str(decision.error)


# The message for one item, and for several.
_MESSAGES: Final[Mapping[str, tuple[Any, Any]]] = {
    bulk_review.APPROVE: (gettext_lazy("Approved."), gettext_lazy("%(count)d items approved.")),
    bulk_review.REJECT: (gettext_lazy("Rejected."), gettext_lazy("%(count)d items rejected.")),
    bulk_review.CHOOSE: (gettext_lazy("Variant chosen."), gettext_lazy("%(count)d variants chosen.")),
    bulk_review.ANOTHER: (gettext_lazy("Creating a variant."), gettext_lazy("Creating %(count)d variants.")),
    NOW: (gettext_lazy("Publishing in 10 s."), gettext_lazy("Publishing %(count)d items in 10 s.")),
    NEXT: (
        gettext_lazy("Scheduled for the next free slot."),
        gettext_lazy("%(count)d items scheduled for the next free slots."),
    ),
    AT: (gettext_lazy("Scheduled."), gettext_lazy("%(count)d items scheduled.")),
}


def _describe_done(
    place: Place, form_data: Mapping[str, Any], decisions: Sequence[bulk_review.Decided]
) -> tuple[str, bool]:
    """Return the sentences about what was done, and whether every post is sent at its time.

    The second value is `False` if a blocker keeps a post waiting.
    """
    if not decisions:
        return "", True
    if form_data["act"] != bulk_review.PUBLISH:
        return _message_for_count(form_data["act"], len(decisions)), True
    rows = slot_times.publications_in(place.workspace, *[decision.former or {} for decision in decisions])
    waits = next_actions.find_waits(place, rows, now=utc_now())
    timing = form_data["when"] or NOW
    if timing == NOW:
        # An item counts if at least one of its posts is sent.
        count = len({row.item_id for row in rows if row.pk not in waits.publications})
    else:
        count = len(decisions)
    lines = [_message_for_count(timing, count)] if count else []
    if timing != NOW and len(decisions) == 1 and rows:
        lines = [slot_times.scheduled_sentence(rows, place.workspace.timezone)]
    return " ".join([*lines, *waits.lines]), not waits.blockers


def _message_for_count(name: str, count: int) -> str:
    singular, plural = _MESSAGES[name]
    return str(plural) % {"count": count} if count > 1 else str(singular)


def _refusal_response(request: HttpRequest, place: Place, error: AppError) -> HttpResponse:
    if is_part(request):
        return JsonResponse({"error": str(error), "failed": [], "decided": []}, status=error.status)
    messages.error(request, str(error))
    return redirect(_queue_address(request, place))


def _queue_address(request: HttpRequest, place: Place, *, at: UUID | None = None) -> str:
    """Return the address of the queue with the same filters, at this item or after the decided story.

    If the decision was made in Content, that is the address of Content with its filters.
    """
    query_data = QueryDict(request.POST.get("query", ""), mutable=True)
    if request.POST.get("list") == CONTENT_LIST:
        return f"{place.url_of('items_page')}?{query_data.urlencode()}".rstrip("?")
    query = QueryDict(QueueFilter.from_query(query_data, place.workspace).query, mutable=True)
    after = request.POST.get("after", "")
    if at is not None:
        query["at"] = encode("gen", at)
    elif decode("gen", after) is not None:
        query["after"] = after
    return f"{place.url_of('review')}?{query.urlencode()}"


def render_toast(
    request: HttpRequest,
    message: str,
    place: Place | None = None,
    notes: Sequence[str] = (),
    *,
    is_good: bool,
) -> str:
    """Render a message as a page load would show it, with an undo if there are notes."""
    context: dict[str, Any] = {"sentence": message, "is_good": is_good}
    if place is not None and notes:
        context |= {"address": place.url_of("review_undo"), "fields": {"undo": " ".join(notes)}}
    return render_to_string("components/toast_now.html", context, request=request)


def is_part(request: HttpRequest) -> bool:
    """Return whether the page's script sent the request, so that the response is JSON or a fragment."""
    return request.headers.get("X-Part") == "1"
