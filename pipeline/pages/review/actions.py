"""Decisions on one item or on several: each with the version that was looked at, and each with its undo."""

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

from accounts.pages import form_recovery
from accounts.pages.act_messages import offer_undo
from accounts.pages.page_access import Place, page
from config.core.clock import utc_now
from config.core.errors import AppError, Invalid
from config.core.ids import decode, encode
from config.core.states import Overtaken
from pipeline import limits
from pipeline.dashboard import counts
from pipeline.pages.items import next_actions, slot_times
from pipeline.pages.items.forms import AT, NEXT, NOW, REASON_CHARACTERS, WhenForm
from pipeline.pages.review import refusals, stories
from pipeline.pages.review.page import review_query_in, versions_in
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
"""What is published now waits so long, so that whoever sees a mistake in that moment takes it back."""
_SALT: Final = "review.undo"
_KEPT_SECONDS: Final = 24 * 3600


class DecideForm(WhenForm):
    """An act with what belongs to it; `items` are read apart."""

    act = forms.ChoiceField(choices=[(name, name) for name in sorted(bulk_review.ACTS)])
    reason = forms.CharField(required=False, max_length=REASON_CHARACTERS)
    said = forms.CharField(required=False, max_length=REASON_CHARACTERS)
    """A reason of one tap, in place of a typed one."""
    hint = forms.CharField(required=False, max_length=limits.HINT_CHARACTERS)

    def __init__(self, *args: Any, zone: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.zone = zone
        self.fields["when"].required = False

    def given(self, place: Place, shown: Mapping[UUID, int]) -> bulk_review.BulkReviewInput:
        now = utc_now()
        asked = self.cleaned_data
        wish = self.timing()
        if asked["act"] == bulk_review.PUBLISH and asked["when"] not in {NEXT, "at"}:
            wish = replace(wish, publish_at=now + GRACE)
        return bulk_review.BulkReviewInput(
            workspace=place.workspace,
            by=place.user.email,
            now=now,
            reason=asked["reason"] or asked["said"],
            wish=wish,
            hint=asked["hint"],
            shown=shown,
        )


@page("edit", methods=("POST",))
def review_decide(request: HttpRequest, place: Place) -> HttpResponse:
    """`items` are ids with versions, with commas between them, and after a bar those that they are chosen
    among.
    """
    form = DecideForm(request.POST, zone=place.workspace.timezone)
    versions, shown = _versions_in(request.POST)
    try:
        if not form.is_valid():
            raise Invalid.one(
                None, "form", " ".join(str(line) for lines in form.errors.values() for line in lines)
            )
        if not versions:
            raise Invalid.one("items", "required", _("Choose at least one item."))
        if not form_recovery.is_first_sending(request):
            raise Invalid.one(None, "repeated", _("Already sent."))
        looked_at = _looked_at(place, versions)
        found = bulk_review.decide(form.cleaned_data["act"], looked_at, form.given(place, shown))
    except AppError as error:
        form_recovery.allow_sending_again(request)
        return _refused(request, place, error)
    if all(one.error is not None for one in found):
        form_recovery.allow_sending_again(request)
    return _told(request, place, form.cleaned_data, found, missing=len(versions) - len(looked_at))


@page("edit", methods=("POST",))
def review_undo(request: HttpRequest, place: Place) -> HttpResponse:
    """`undo` are signed notes of what was there before, with a space between them."""
    done, errors = undo_all(place, request.POST.get("undo", "").split())
    said = ngettext("Undone.", "%(count)d decisions undone.", len(done)) % {"count": len(done)}
    lines = [*([said] if done else []), *dict.fromkeys(errors)]
    if not lines:
        lines = [_("Nothing to undo.")]
    if is_part(request):
        status = 200 if done else 409
        return JsonResponse(
            {
                "toast": toast(request, " ".join(lines), is_good=not errors),
                "items": [encode("gen", one.pk) for one in done],
                "to_review": counts.to_review(place.workspace.pk).text,
                "error": " ".join(lines) if not done else "",
            },
            status=status,
        )
    (messages.error if errors or not done else messages.success)(request, " ".join(lines))
    if request.POST.get("week"):
        return redirect(f"{place.address('calendar')}?{urlencode({'on': request.POST['week']})}")
    own_page = decode("gen", request.POST.get("item", ""))
    if own_page is not None:
        return redirect(place.address("item_page", gen=own_page))
    return redirect(_back(request, place, at=done[0].pk if done else None))


def undo_all(place: Place, notes: Sequence[str]) -> tuple[list[GeneratedItem], list[str]]:
    """The items that are as they were before, and why the others aren't."""
    now = utc_now()
    errors: list[str] = []
    done: list[GeneratedItem] = []
    for note in notes[: bulk_review.AT_ONCE]:
        read = _read(place, note)
        row = _find(place, [read[0]]).get(read[0]) if read is not None else None
        if read is None or row is None:
            errors.append(_("This can't be undone any more."))
            continue
        try:
            done.append(undoing.undo(row, read[1], by=place.user.email, now=now))
        except Overtaken:
            errors.append(meanwhile(place, row))
        except AppError as error:
            errors.append(str(error))
    return done, errors


def offer(
    request: HttpRequest, place: Place, said: str, notes: Sequence[str], query: str, *, is_good: bool = True
) -> None:
    """Say it, with a button that takes it back."""
    fields = {"undo": " ".join(notes), "query": query}
    offer_undo(request, said, place.address("review_undo"), fields, is_good=is_good)


def offer_undo_of(
    request: HttpRequest, place: Place, said: str, done: bulk_review.Decided, *, week: date | None = None
) -> None:
    """The undo leads back to the item's own page, or to that week of the calendar."""
    fields = {"undo": note_of(place, done), "item": encode("gen", done.item.pk)}
    if week is not None:
        fields["week"] = week.isoformat()
    offer_undo(request, said, place.address("review_undo"), fields)


def note_of(place: Place, found: bulk_review.Decided) -> str:
    """What takes it back, signed: nobody can make one up, nor use one in another workspace."""
    read = {"ws": place.workspace.public_id, "gen": encode("gen", found.item.pk), "former": found.former}
    return signing.dumps(read, salt=_SALT, compress=True)


def _read(place: Place, note: str) -> tuple[UUID, dict[str, Any]] | None:
    try:
        read = signing.loads(note, salt=_SALT, max_age=_KEPT_SECONDS)
    except signing.BadSignature:
        return None
    key = decode("gen", read["gen"])
    return None if key is None or read["ws"] != place.workspace.public_id else (key, read["former"])


def _find(place: Place, keys: Sequence[UUID]) -> dict[UUID, GeneratedItem]:
    rows = stories.all_of(place).select_related("workspace", "raw_item", "generation")
    return {row.pk: row for row in rows.defer("workspace__model_key").filter(pk__in=keys)}


def _looked_at(place: Place, versions: Mapping[UUID, int]) -> list[tuple[GeneratedItem, int]]:
    there = _find(place, list(versions))
    return [(there[key], version) for key, version in versions.items() if key in there]


def _versions_in(posted: QueryDict) -> tuple[dict[UUID, int], dict[UUID, int]]:
    """What is decided on, and what was shown beside it; `also` counts where `whole` is ticked."""
    given = posted.getlist("items") + (posted.getlist("also") if posted.get("whole") else [])
    chosen: list[str] = []
    beside: list[str] = []
    for one in given:
        items, _bar, others = one.partition("|")
        chosen += items.split(",")
        beside += others.split(",")
    return versions_in(chosen), versions_in(beside)


def _told(
    request: HttpRequest,
    place: Place,
    asked: Mapping[str, Any],
    found: Sequence[bulk_review.Decided],
    *,
    missing: int,
) -> HttpResponse:
    done = [one for one in found if one.error is None]
    refused = [one for one in found if one.error is not None]
    failures = refusals.refusals([(one.item, _why(place, one)) for one in refused], of=len(found))
    if missing:
        failures.append(_("Deleted rows were skipped."))
    said, is_sent = _said(place, asked, done)
    notes = [note_of(place, one) for one in done]
    if not done and not failures:
        failures = [_("Nothing to decide.")]
    if is_part(request):
        status = 200 if done else (found[0].error.status if found and found[0].error else 409)
        return JsonResponse(
            {
                "toast": toast(
                    request,
                    " ".join([said, *failures]).strip(),
                    place,
                    notes,
                    is_good=is_sent and not failures,
                ),
                "error": " ".join(failures),
                "failed": [encode("gen", one.item.pk) for one in found if one.error is not None],
                "decided": [encode("gen", one.item.pk) for one in done],
                "undo": " ".join(notes),
                "to_review": counts.to_review(place.workspace.pk).text,
            },
            status=status,
        )
    if done:
        offer(request, place, said, notes, request.POST.get("query", ""), is_good=is_sent)
    for line in failures:
        messages.error(request, line)
    stays = asked["act"] in {bulk_review.CHOOSE, bulk_review.ANOTHER} or "stay" in request.POST
    at = done[0].item.pk if done and stays else found[0].item.pk if found and not done else None
    return redirect(_back(request, place, at=at))


def _why(place: Place, one: bulk_review.Decided) -> str:
    return meanwhile(place, one.item) if isinstance(one.error, Overtaken) else str(one.error)


_SAID: Final[Mapping[str, tuple[Any, Any]]] = {
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


def _said(place: Place, asked: Mapping[str, Any], done: Sequence[bulk_review.Decided]) -> tuple[str, bool]:
    """What came of it in words, and False where something of it waits, though it was asked to be published."""
    if not done:
        return "", True
    if asked["act"] != bulk_review.PUBLISH:
        return _counted(asked["act"], len(done)), True
    rows = slot_times.publications_in(place.workspace, *[one.former or {} for one in done])
    waits = next_actions.waits_of(place, rows, now=utc_now())
    name = asked["when"] or NOW
    if name == NOW:
        # Those of which at least one post is sent.
        count = len({row.item_id for row in rows if row.pk not in waits.publications})
    else:
        count = len(done)
    lines = [_counted(name, count)] if count else []
    if name != NOW and len(done) == 1 and rows:
        lines = [slot_times.scheduled_sentence(rows, place.workspace.timezone)]
    return " ".join([*lines, *waits.lines]), not waits.obstacles


def _counted(name: str, count: int) -> str:
    one, several = _SAID[name]
    return str(several) % {"count": count} if count > 1 else str(one)


def _refused(request: HttpRequest, place: Place, error: AppError) -> HttpResponse:
    if is_part(request):
        return JsonResponse({"error": str(error), "failed": [], "decided": []}, status=error.status)
    messages.error(request, str(error))
    return redirect(_back(request, place))


def _back(request: HttpRequest, place: Place, *, at: UUID | None = None) -> str:
    """Where the person was: the same filters, at this item, or behind the story that was decided on."""
    given = QueryDict(request.POST.get("query", ""), mutable=True)
    query = QueryDict(review_query_in(place, given).query, mutable=True)
    after = request.POST.get("after", "")
    if at is not None:
        query["at"] = encode("gen", at)
    elif decode("gen", after) is not None:
        query["after"] = after
    return f"{place.address('review')}?{query.urlencode()}"


def toast(
    request: HttpRequest, said: str, place: Place | None = None, notes: Sequence[str] = (), *, is_good: bool
) -> str:
    """The same HTML as after a page load."""
    context: dict[str, Any] = {"sentence": said, "is_good": is_good}
    if place is not None and notes:
        context |= {"address": place.address("review_undo"), "fields": {"undo": " ".join(notes)}}
    return render_to_string("components/toast_now.html", context, request=request)


def is_part(request: HttpRequest) -> bool:
    """Asked by the page's script, which goes on without a page load."""
    return request.headers.get("X-Part") == "1"
