"""New: paste a link, a text or a file, see what it costs, have it made, and watch it come about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.pages import form_recovery
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, page
from accounts.pages.polling import is_poll_for, polling_fragment
from config.core.clock import utc_now
from config.core.errors import Invalid
from config.core.ids import decode, encode
from config.core.middleware import body_limit
from pipeline import limits
from pipeline.ingest import generation_plan, pasted_url, raw_content, store_raw_item
from pipeline.media import uploads
from pipeline.models import RawItem, Upload, WorkspaceDefaults
from pipeline.models.raw_item import PASTED_PREFIX, UPLOADED_PREFIX
from pipeline.pages.new import outcome, several_links
from pipeline.pages.new.forms import WORDS_CHARACTERS, MakeForm, PasteForm, address_in, why_no_text
from pipeline.pages.new.price import is_agreed, known_choices, price_context

if TYPE_CHECKING:
    from typing import BinaryIO
    from uuid import UUID

    from django.core.files.uploadedfile import UploadedFile
    from django.http import HttpRequest

    from pipeline.generate.eligible_formats import GenerationPlan

_LIVE_SECONDS: Final = 2
_PRICE_PART: Final = "price"


@dataclass
class _Taken:
    """What was pasted: the beginning of the second form, and what has to be said of it."""

    initial: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@body_limit(limits.UPLOAD_BODY_BYTES)
@page("edit")
def making(request: HttpRequest, place: Place) -> HttpResponse:
    if request.method == "POST" and is_poll_for(request, _PRICE_PART):
        chosen = MakeForm(request.POST, workspace=place.workspace)
        return render(request, "pages/new/price_part.html", _price_context(request, place, chosen))
    if request.method == "POST" and "make" in request.POST:
        return _make(request, place)
    if request.method == "POST" and "links" in request.POST:
        return several_links.make(request, place)
    files = {"files": request.FILES} if request.method == "POST" else {}
    form = form_recovery.form_for(request, PasteForm, **files)
    if request.method == "POST" and form.is_valid():
        links = several_links.links_in(form.cleaned_data["what"]) if not form.cleaned_data["file"] else []
        with report_errors(request, form):
            if len(links) > 1:
                return several_links.read(request, place, links)
            taken = _take(place, form)
            return _show(request, place, _fresh_form(place, taken), taken.notes)
    return render(request, "pages/new/page.html", {"form": form})


def _take(place: Place, form: PasteForm) -> _Taken:
    """The words that were pasted, or behind the link, or in the file."""
    taken = _Taken()
    what = form.cleaned_data["what"].strip()
    links = several_links.links_in(what)
    url = address_in(what) or (links[0] if len(links) == 1 else "")
    if url:
        taken.initial["url"] = url
        if not form.cleaned_data["file"]:
            _read_link(url, taken)
    elif what:
        taken.initial["body"] = what
    if form.cleaned_data["file"]:
        _read_file(place, form.cleaned_data["file"], taken)
    if len(taken.initial.get("body", "")) > WORDS_CHARACTERS:
        message = _("More than %(most)s characters. Shorten it or use POST /v1/raw.")
        field = "file" if form.cleaned_data["file"] else "what"
        raise Invalid.one(field, "too_long", message % {"most": f"{WORDS_CHARACTERS:,}"})
    if not taken.initial.get("title"):
        taken.initial["title"] = pasted_url.headline_of(taken.initial.get("body", ""))
    return taken


def _read_link(url: str, taken: _Taken) -> None:
    read = pasted_url.read_page(url, now=utc_now())
    if read.entry is None:
        taken.notes.append(read.message)
        return
    taken.initial |= {"title": read.entry.title, "body": read.entry.body, "url": read.entry.url or url}


def _read_file(place: Place, file: UploadedFile[Any], taken: _Taken) -> None:
    given = uploads.ReceivedFile(cast("BinaryIO", file.file), file.size or 0, file.name or "")
    taken.initial["is_file"] = True
    words = uploads.read_text_file(given)
    if words is None:
        kept = uploads.store_upload(place.workspace, given, test=False, actor=place.user.email)
        taken.initial["upload"] = encode("upl", kept.pk)
        return
    before = taken.initial.get("body", "")
    taken.initial["body"] = f"{before}\n\n{words}".strip()


def _fresh_form(place: Place, taken: _Taken) -> MakeForm:
    defaults = WorkspaceDefaults.objects.of(place.workspace).get()
    initial = {"engines": defaults.engines, "persona": encode("per", defaults.persona_id), "variants": 1}
    return MakeForm(workspace=place.workspace, initial={**initial, **taken.initial})


def _make(request: HttpRequest, place: Place) -> HttpResponse:
    form = MakeForm(request.POST, workspace=place.workspace)
    if not form.is_valid():
        return _show(request, place, form)
    values = form.cleaned_data
    workspace, now = place.workspace, utc_now()
    defaults = WorkspaceDefaults.objects.of(workspace).select_related("push_source").get()
    with report_errors(request, form):
        content = _content(request, place, values)
        plan = generation_plan.estimate(workspace, defaults.push_source, content, defaults=defaults, now=now)
        if not plan.engines:
            form.add_error(
                "engines", _("None of these formats can be made of this. Change the text or the formats.")
            )
        elif request.POST["make"] == "yes" and is_agreed(plan.price, values["price"]):
            pushed = store_raw_item.push(workspace, defaults.push_source, content, defaults=defaults, now=now)
            return redirect(place.address("made", raw=pushed.raw_item.pk))
    return _show(request, place, form)


def _content(request: HttpRequest, place: Place, values: dict[str, Any]) -> raw_content.RawContent:
    media = [{"upload": values["upload"]}] if values.get("upload") else []
    once = request.POST.get("once", "")[:64]
    is_file = bool(values.get("upload") or values.get("is_file"))
    return raw_content.RawContent(
        # Of one showing of the form: a double click makes one thing, the same words on another day another one.
        external_id=f"{UPLOADED_PREFIX if is_file else PASTED_PREFIX}{once}" if once else "",
        url=values.get("url", ""),
        title=values.get("title", ""),
        body=values.get("body", ""),
        media=uploads.with_types(place.workspace, media, test=False),
        engines=values.get("engines") or (),
        variants=values.get("variants") or 1,
        persona_id=decode("per", values.get("persona") or ""),
    )


def _show(request: HttpRequest, place: Place, form: MakeForm, notes: list[str] | None = None) -> HttpResponse:
    """The second form, with what its choices cost."""
    context = {
        **_price_context(request, place, form),
        "notes": notes or [],
        "upload": _upload(place, str(form["upload"].value() or "")),
    }
    is_create = form.is_bound and request.POST.get("make") == "yes" and not form.errors
    # What came back with nothing to mend came back for its price alone.
    context["is_new_price"] = is_create and context["has_plan"]
    return render(request, "pages/new/make.html", context)


def _price_context(request: HttpRequest, place: Place, form: MakeForm) -> dict[str, Any]:
    """What the choices of the second form cost as they are now, and which of them are skipped."""
    values = {name: form[name].value() or "" for name in form.fields}
    plan = _plan(request, place, values)
    price, why_not = (plan.price, plan.why_not) if plan else (0, ())
    return {
        **price_context(place, price, why_not, has_plan=bool(plan and plan.engines)),
        "form": form,
        "why_no_price": _why_no_price(values),
    }


def _why_no_price(values: dict[str, Any]) -> str:
    """Read only where nothing is made of what was chosen."""
    why = why_no_text(values["title"], values["body"])
    if why:
        return why
    if not values["engines"]:
        return _("Choose a format to see the price.")
    return _("None of these formats can be made of this text.")


def _plan(request: HttpRequest, place: Place, values: dict[str, Any]) -> GenerationPlan | None:
    defaults = WorkspaceDefaults.objects.of(place.workspace).select_related("push_source").get()
    wanted = {**values, **known_choices(values), "upload": ""}
    if not wanted["engines"] or not any(wanted.get(name) for name in ("title", "body")):
        return None
    content = _content(request, place, wanted)
    return generation_plan.estimate(
        place.workspace, defaults.push_source, content, defaults=defaults, now=utc_now()
    )


def _upload(place: Place, public_id: str) -> Upload | None:
    key = decode("upl", public_id)
    if key is None:
        return None
    found: Upload | None = Upload.objects.of(place.workspace).filter(pk=key, test=False).first()
    return found


# --- What comes of it ------------------------------------------------------------------------------------------------


@page("look", methods=("GET",))
def made(request: HttpRequest, place: Place, raw: UUID) -> HttpResponse:
    row = get_object_or_404(RawItem.objects.of(place.workspace), pk=raw, deleted_at=None, test=False)
    seen = outcome.of(place.workspace, row)
    part = polling_fragment(
        request,
        "made",
        "pages/new/made_items.html",
        {"raw": row, "seen": seen, "public_url": settings.PUBLIC_URL},
        css_class="stack",
        interval_seconds=0 if seen.is_done else _LIVE_SECONDS,
    )
    if isinstance(part, HttpResponse):
        return part
    return render(request, "pages/new/made.html", {"raw": row, "live": part})
