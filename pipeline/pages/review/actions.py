"""Views that decide on one item or several, each in the version that the person saw, and undo that."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

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
from pipeline.pages.review import refusals, stories
from pipeline.pages.review.forms import QueueFilter
from pipeline.pages.review.page import versions_in
from pipeline.pages.review.refusals import meanwhile
from pipeline.review import bulk_review
from pipeline.review import undo as undoing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date
    from uuid import UUID

    from django.http import HttpRequest

    from pipeline.models import GeneratedItem

GRACE: Final = timedelta(seconds=10)
"""A post that is published now waits this long, so that a mistake seen at that moment can still be undone."""
CONTENT_LIST: Final = "content"
"""The POST field `list` of decisions that were made in Content instead of the queue."""
_SALT: Final = "review.undo"
_UNDO_SECONDS: Final = 24 * 3600


class DecideForm(WhenForm):
    """Validates an act and what belongs to it; the field `items` is parsed elsewhere."""

    act = forms.ChoiceField(choices=[(name, name) for name in sorted(bulk_review.ACTS)])
    reason = forms.CharField(required=False, max_length=REASON_CHARACTERS)
    said = forms.CharField(required=False, max_length=REASON_CHARACTERS)
    """A ready-made reason, used where none was typed."""
    hint = forms.CharField(required=False, max_length=limits.HINT_CHARACTERS)

    def __init__(self, *args: Any, zone: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.zone = zone
        self.fields["when"].required = False

    def given(self, place: Place, shown: Mapping[UUID, int]) -> bulk_review.BulkReviewInput:
        """Return the input of `bulk_review`; `shown` are versions of variants shown beside the items."""
        now = utc_now()
        values = self.cleaned_data
        timing = self.timing()
        if values["act"] == bulk_review.PUBLISH and values["when"] not in {NEXT, "at"}:
            timing = replace(timing, publish_at=now + GRACE)
        return bulk_review.BulkReviewInput(
            workspace=place.workspace,
            by=place.user.email,
            now=now,
            reason=values["reason"] or values["said"],
            wish=timing,
            hint=values["hint"],
            shown=shown,
        )


@workspace_page("edit", methods=("POST",))
def review_decide(request: HttpRequest, place: Place) -> HttpResponse:
    """Decide on the items in the POST field `items`.

    The field holds ids with versions, such as `gen_…:3`, with commas between them. After a bar follow the
    other variants among which these were chosen.
    """
    form = DecideForm(request.POST, zone=place.workspace.timezone)
    versions, shown_beside = _parse_posted_items(request.POST)
    try:
        if not form.is_valid():
            raise Invalid.one(
                None, "form", " ".join(str(line) for lines in form.errors.values() for line in lines)
            )
        if not versions:
            raise Invalid.one("items", "required", _("Choose at least one item."))
        if not kept_forms.is_first_sending(request):
            raise Invalid.one(None, "repeated", _("Already sent."))
        items_seen = _items_with_versions(place, versions)
        decisions = bulk_review.decide(form.cleaned_data["act"], items_seen, form.given(place, shown_beside))
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
    """Undo decisions; the POST field `undo` holds signed notes of former states, separated by spaces."""
    restored_items, errors = undo_all(place, request.POST.get("undo", "").split())
    text = ngettext("Undone.", "%(count)d decisions undone.", len(restored_items)) % {
        "count": len(restored_items)
    }
    lines = [*([text] if restored_items else []), *dict.fromkeys(errors)]
    if not lines:
        lines = [_("Nothing to undo.")]
    if is_part(request):
        status = 200 if restored_items else 409
        return JsonResponse(
            {
                "toast": toast(request, " ".join(lines), is_good=not errors),
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
    """Undo the decisions of these notes; return the items that were restored, and why the others weren't."""
    now = utc_now()
    errors: list[str] = []
    restored_items: list[GeneratedItem] = []
    for note in notes[: bulk_review.AT_ONCE]:
        undo_state = _load_note(place, note)
        item = _find_items(place, [undo_state[0]]).get(undo_state[0]) if undo_state is not None else None
        if undo_state is None or item is None:
            errors.append(_("This can't be undone any more."))
            continue
        try:
            restored_items.append(undoing.undo(item, undo_state[1], by=place.user.email, now=now))
        except Overtaken:
            errors.append(meanwhile(place, item))
        except AppError as error:
            errors.append(str(error))
    return restored_items, errors


def offer(
    request: HttpRequest, place: Place, said: str, notes: Sequence[str], *, is_good: bool = True
) -> None:
    """Show the message with a button that undoes the decisions and returns to the same list."""
    fields = {"undo": " ".join(notes)} | {
        name: request.POST[name] for name in ("list", "query") if request.POST.get(name)
    }
    offer_undo(request, said, place.url_of("review_undo"), fields, is_good=is_good)


def offer_undo_of(
    request: HttpRequest, place: Place, said: str, done: bulk_review.Decided, *, week: date | None = None
) -> None:
    """Offer an undo that leads back to the item's own page, or to that week of the calendar."""
    fields = {"undo": note_of(place, done), "item": encode("gen", done.item.pk)}
    if week is not None:
        fields["week"] = week.isoformat()
    offer_undo(request, said, place.url_of("review_undo"), fields)


def note_of(place: Place, found: bulk_review.Decided) -> str:
    """Return a signed note of the state before a decision, by which it is undone.

    Because it is signed and names the workspace, nobody can forge one or use it in another workspace.
    """
    note = {"ws": place.workspace.public_id, "gen": encode("gen", found.item.pk), "former": found.former}
    return signing.dumps(note, salt=_SALT, compress=True)


def _load_note(place: Place, note: str) -> tuple[UUID, dict[str, Any]] | None:
    """Return a note's item id and former state; None if it is forged, too old or another workspace's."""
    try:
        payload = signing.loads(note, salt=_SALT, max_age=_UNDO_SECONDS)
    except signing.BadSignature:
        return None
    key = decode("gen", payload["gen"])
    return None if key is None or payload["ws"] != place.workspace.public_id else (key, payload["former"])


def _find_items(place: Place, keys: Sequence[UUID]) -> dict[UUID, GeneratedItem]:
    """Return the workspace's items with these ids, with what a decision reads of them."""
    rows = stories.all_of(place).select_related("workspace", "raw_item", "generation")
    return {row.pk: row for row in rows.defer("workspace__model_key").filter(pk__in=keys)}


def _items_with_versions(place: Place, versions: Mapping[UUID, int]) -> list[tuple[GeneratedItem, int]]:
    """Return the items that are still there, each with the version that the person saw."""
    items_by_id = _find_items(place, list(versions))
    found = [(items_by_id[key], version) for key, version in versions.items() if key in items_by_id]
    # Of several variants the first is published, however the list that they were chosen from is sorted.
    return sorted(found, key=lambda pair: pair[0].variant_index)


def _parse_posted_items(posted: QueryDict) -> tuple[dict[UUID, int], dict[UUID, int]]:
    """Return the versions of the items to decide on, and of those that were shown beside them.

    The field `also`, the rest of a story, counts where `whole` is ticked.
    """
    tokens = posted.getlist("items") + (posted.getlist("also") if posted.get("whole") else [])
    chosen_tokens: list[str] = []
    beside_tokens: list[str] = []
    for token in tokens:
        items, _bar, others = token.partition("|")
        chosen_tokens += items.split(",")
        beside_tokens += others.split(",")
    return versions_in(chosen_tokens), versions_in(beside_tokens)


def _decision_response(
    request: HttpRequest,
    place: Place,
    form_data: Mapping[str, Any],
    decisions: Sequence[bulk_review.Decided],
    *,
    missing: int,
) -> HttpResponse:
    """Answer with what came of the decisions: a redirect with messages, or JSON for the page's script.

    `missing` counts the chosen items that were deleted meanwhile.
    """
    done = [decision for decision in decisions if decision.error is None]
    refused = [decision for decision in decisions if decision.error is not None]
    failures = refusals.refusals(
        [(decision.item, _refusal_text(place, decision)) for decision in refused], of=len(decisions)
    )
    if missing:
        failures.append(_("Deleted rows were skipped."))
    text, is_all_sent = _describe_done(place, form_data, done)
    notes = [note_of(place, decision) for decision in done]
    if not done and not failures:
        failures = [_("Nothing to decide.")]
    if is_part(request):
        status = 200 if done else (decisions[0].error.status if decisions and decisions[0].error else 409)
        return JsonResponse(
            {
                "toast": toast(
                    request,
                    " ".join([text, *failures]).strip(),
                    place,
                    notes,
                    is_good=is_all_sent and not failures,
                ),
                "error": " ".join(failures),
                "failed": [
                    encode("gen", decision.item.pk) for decision in decisions if decision.error is not None
                ],
                "decided": [encode("gen", decision.item.pk) for decision in done],
                "undo": " ".join(notes),
                "to_review": counts.count_to_review(place.workspace.pk).text,
            },
            status=status,
        )
    if done:
        offer(request, place, text, notes, is_good=is_all_sent)
    for line in failures:
        messages.error(request, line)
    stays = form_data["act"] in {bulk_review.CHOOSE, bulk_review.ANOTHER} or "stay" in request.POST
    at = done[0].item.pk if done and stays else decisions[0].item.pk if decisions and not done else None
    return redirect(_queue_address(request, place, at=at))


def _refusal_text(place: Place, decision: bulk_review.Decided) -> str:
    return meanwhile(place, decision.item) if isinstance(decision.error, Overtaken) else str(decision.error)


# The message for one item, and for several.
_MESSAGES: Final[Mapping[str, tuple[Any, Any]]] = {
    bulk_review.APPROVE: (gettext_lazy("Approved."), gettext_lazy("%(count)d items approved.")),
    bulk_review.REJECT: (gettext_lazy("Rejected."), gettext_lazy("%(count)d items rejected.")),
    bulk_review.CHOOSE: (
        gettext_lazy("Variant chosen."),
        gettext_lazy("%(count)d variants chosen."),
    ),
    bulk_review.ANOTHER: (
        gettext_lazy("Creating a variant."),
        gettext_lazy("Creating %(count)d variants."),
    ),
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
    """Return what was done in words, and False where something waits that was to be published."""
    if not decisions:
        return "", True
    if form_data["act"] != bulk_review.PUBLISH:
        return _message_for_count(form_data["act"], len(decisions)), True
    rows = slot_times.publications_in(place.workspace, *[decision.former or {} for decision in decisions])
    obstacles = next_actions.waits_of(place, rows, now=utc_now())
    timing = form_data["when"] or NOW
    if timing == NOW:
        # An item counts where at least one of its posts is sent.
        count = len({row.item_id for row in rows if row.pk not in obstacles.publications})
    else:
        count = len(decisions)
    lines = [_message_for_count(timing, count)] if count else []
    if timing != NOW and len(decisions) == 1 and rows:
        lines = [slot_times.scheduled_sentence(rows, place.workspace.timezone)]
    return " ".join([*lines, *obstacles.lines]), not obstacles.obstacles


def _message_for_count(name: str, count: int) -> str:
    singular, plural = _MESSAGES[name]
    return str(plural) % {"count": count} if count > 1 else str(singular)


def _refusal_response(request: HttpRequest, place: Place, error: AppError) -> HttpResponse:
    if is_part(request):
        return JsonResponse({"error": str(error), "failed": [], "decided": []}, status=error.status)
    messages.error(request, str(error))
    return redirect(_queue_address(request, place))


def _queue_address(request: HttpRequest, place: Place, *, at: UUID | None = None) -> str:
    """Return the address of the queue with the same filters, at this item or behind the decided story.

    Where Content sent the decision, its own with its filters.
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


def toast(
    request: HttpRequest, said: str, place: Place | None = None, notes: Sequence[str] = (), *, is_good: bool
) -> str:
    """Render a toast, with an undo where there are notes, as a page load would show it."""
    context: dict[str, Any] = {"sentence": said, "is_good": is_good}
    if place is not None and notes:
        context |= {"address": place.url_of("review_undo"), "fields": {"undo": " ".join(notes)}}
    return render_to_string("components/toast_now.html", context, request=request)


def is_part(request: HttpRequest) -> bool:
    """Return whether the page's script sent the request; it continues without a page load."""
    return request.headers.get("X-Part") == "1"
