"""Creates items from a link, a text or a file: shows what they cost, has them made, and shows their progress."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.pages import kept_forms
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, workspace_page
from accounts.pages.poll_fragment import is_poll_for, polling_fragment
from config.core.clock import utc_now
from config.core.errors import Invalid
from config.core.ids import decode, encode
from config.core.middleware import body_limit
from pipeline import limits
from pipeline.generate.generation_plan import GenerationPlan
from pipeline.ingest import pasted_url, plan_and_estimate, raw_content, store_raw_item
from pipeline.media import uploads
from pipeline.models import RawItem, Upload, WorkspaceDefaults
from pipeline.models.raw_item import PASTED_PREFIX, UPLOADED_PREFIX
from pipeline.pages.new import outcome, several_links
from pipeline.pages.new.forms import MAX_TEXT_CHARACTERS, MakeForm, PasteForm, address_in, why_no_text
from pipeline.pages.new.price import is_agreed, known_choices, price_context, why_no_format

if TYPE_CHECKING:
    from collections.abc import Container
    from typing import BinaryIO
    from uuid import UUID

    from django.core.files.uploadedfile import UploadedFile
    from django.http import HttpRequest

_POLL_SECONDS: Final = 2
_PRICE_PART: Final = "price"


@dataclass
class _PastedContent:
    """What was read: initial values of the second form, and `notes` that the page shows above it."""

    initial: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@body_limit(limits.UPLOAD_BODY_BYTES)
@workspace_page("edit")
def making(request: HttpRequest, place: Place) -> HttpResponse:
    """Show the first or second step, or make the items.

    A POST of the first step reads what was pasted and shows the second step. The second step posts `make` for a single
    content, or `links` for several, and polls for its price as a fragment when the choices change.
    """
    if request.method == "POST" and is_poll_for(request, _PRICE_PART):
        price_form = MakeForm(request.POST, workspace=place.workspace)
        return render(request, "pages/new/price_part.html", _price_context(request, place, price_form))
    if request.method == "POST" and "make" in request.POST:
        return _make(request, place)
    if request.method == "POST" and "links" in request.POST:
        return several_links.make_items(request, place)
    files = {"files": request.FILES} if request.method == "POST" else {}
    form = kept_forms.form_for(request, PasteForm, **files)
    if request.method == "POST" and form.is_valid():
        links = several_links.links_in(form.cleaned_data["what"]) if not form.cleaned_data["file"] else []
        with report_errors(request, form):
            if len(links) > 1:
                return several_links.read_and_show(request, place, links)
            pasted = _read_pasted(place, form)
            return _render_form(request, place, _prefilled_form(place, pasted), pasted.notes)
    return render(request, "pages/new/page.html", {"form": form})


def _read_pasted(place: Place, form: PasteForm) -> _PastedContent:
    """Read the pasted text, or the text of the link's page or of the file, and find its title.

    With a file, the link isn't read. Raises `Invalid` if the text is longer than `MAX_TEXT_CHARACTERS`, and the errors
    of `uploads` if the file can't be stored.
    """
    pasted = _PastedContent()
    text = form.cleaned_data["what"].strip()
    links = several_links.links_in(text)
    url = address_in(text) or (links[0] if len(links) == 1 else "")
    if url:
        pasted.initial["url"] = url
        if not form.cleaned_data["file"]:
            _read_link(url, pasted)
    elif text:
        pasted.initial["body"] = text
    if form.cleaned_data["file"]:
        _read_file(place, form.cleaned_data["file"], pasted)
    if len(pasted.initial.get("body", "")) > MAX_TEXT_CHARACTERS:
        message = _("More than %(most)s characters. Shorten it or use POST /v1/raw.")
        field = "file" if form.cleaned_data["file"] else "what"
        raise Invalid.one(field, "too_long", message % {"most": f"{MAX_TEXT_CHARACTERS:,}"})
    if not pasted.initial.get("title"):
        pasted.initial["title"] = pasted_url.headline_of(pasted.initial.get("body", ""))
    return pasted


def _read_link(url: str, pasted: _PastedContent) -> None:
    """Add title and text of the link's page; if it can't be read, add the reason as a note."""
    result = pasted_url.read_page(url, now=utc_now())
    if result.entry is None:
        pasted.notes.append(result.message)
        return
    pasted.initial |= {"title": result.entry.title, "body": result.entry.body, "url": result.entry.url or url}


def _read_file(place: Place, file: UploadedFile[Any], pasted: _PastedContent) -> None:
    """Add the text of the file, or store the file as an upload if it is media."""
    received = uploads.ReceivedFile(cast("BinaryIO", file.file), file.size or 0, file.name or "")
    pasted.initial["is_file"] = True
    text = uploads.read_text_file(received)
    if text is None:
        upload = uploads.store_upload(place.workspace, received, test=False, actor=place.user.email)
        pasted.initial["upload"] = encode("upl", upload.pk)
        return
    text_before = pasted.initial.get("body", "")
    pasted.initial["body"] = f"{text_before}\n\n{text}".strip()


def _prefilled_form(place: Place, pasted: _PastedContent) -> MakeForm:
    """Return the second form with the workspace's defaults and what was read."""
    defaults = WorkspaceDefaults.objects.of(place.workspace).get()
    initial = {"engines": defaults.engines, "persona": encode("per", defaults.persona_id), "variants": 1}
    return MakeForm(workspace=place.workspace, initial={**initial, **pasted.initial})


def _make(request: HttpRequest, place: Place) -> HttpResponse:
    """Make the items and redirect to them, or show the form again and make none.

    The form is shown again if it has errors, if only the choices changed, or if the price is higher than was shown.
    """
    form = MakeForm(request.POST, workspace=place.workspace)
    if not form.is_valid():
        return _render_form(request, place, form)
    values = form.cleaned_data
    workspace, now = place.workspace, utc_now()
    defaults = WorkspaceDefaults.objects.of(workspace).select_related("push_source").get()
    with report_errors(request, form):
        content = _raw_content(request, place, values)
        plan = plan_and_estimate.estimate(
            workspace, defaults.push_source, content, defaults=defaults, now=now
        )
        if not plan.engines:
            form.add_error(
                "engines", _("None of these formats can be made of this. Change the text or the formats.")
            )
        elif request.POST["make"] == "yes" and is_agreed(plan.price, values["price"]):
            pushed = store_raw_item.push(workspace, defaults.push_source, content, defaults=defaults, now=now)
            return redirect(place.url_of("made", raw=pushed.raw_item.pk))
    return _render_form(request, place, form)


def _raw_content(request: HttpRequest, place: Place, values: dict[str, Any]) -> raw_content.RawContent:
    """Return the content to make items of, with the choices of the form."""
    media = [{"upload": values["upload"]}] if values.get("upload") else []
    form_key = request.POST.get("once", "")[:64]
    is_file = bool(values.get("upload") or values.get("is_file"))
    return raw_content.RawContent(
        # The key belongs to one rendering of the form, so that a double click makes items once, and pasting the text
        # again makes further ones.
        external_id=f"{UPLOADED_PREFIX if is_file else PASTED_PREFIX}{form_key}" if form_key else "",
        url=values.get("url", ""),
        title=values.get("title", ""),
        body=values.get("body", ""),
        media=uploads.add_mime_types(place.workspace, media, test=False),
        engines=values.get("engines") or (),
        variants=values.get("variants") or 1,
        persona_id=decode("per", values.get("persona") or ""),
    )


def _render_form(
    request: HttpRequest, place: Place, form: MakeForm, notes: list[str] | None = None
) -> HttpResponse:
    """Render the second form with the price of its choices."""
    context = {
        **_price_context(request, place, form),
        "notes": notes or [],
        "upload": _find_upload(place, str(form["upload"].value() or "")),
    }
    is_create = form.is_bound and request.POST.get("make") == "yes" and not form.errors
    # The form had no error, so it is shown again only because the price changed.
    context["is_new_price"] = is_create and context["has_plan"]
    return render(request, "pages/new/make.html", context)


def _price_context(request: HttpRequest, place: Place, form: MakeForm) -> dict[str, Any]:
    """Return the template's context of the form's current choices: what they cost, and what is skipped.

    Unticks and disables the formats that can't be made.
    """
    values = {name: form[name].value() or "" for name in form.fields}
    plan = _estimate_plan(
        request, place, {**values, "engines": form.offered_formats}, tried=form.tried_formats
    )
    chosen = known_choices({"engines": form.block_formats(plan.refusals if plan else {})})["engines"]
    chosen_plan = plan.narrowed_to(chosen) if plan else GenerationPlan()
    return {
        **price_context(place, chosen_plan.price, chosen_plan.why_not, has_plan=bool(chosen_plan.engines)),
        "form": form,
        "has_new_formats": request.POST.get("blocked", "") != form.blocked_digest,
        "why_no_price": why_no_text(values["title"], values["body"]) or why_no_format(form),
    }


def _estimate_plan(
    request: HttpRequest, place: Place, values: dict[str, Any], *, tried: Container[str]
) -> GenerationPlan | None:
    """Return what would be made of the text and the upload, or `None` without a text and an upload.

    Drafts are written of the formats in `tried` alone, because a person waits for the price.
    """
    defaults = WorkspaceDefaults.objects.of(place.workspace).select_related("push_source").get()
    upload = values["upload"] if _find_upload(place, str(values["upload"])) else ""
    chosen_values = {**values, **known_choices(values), "upload": upload}
    if not any(chosen_values.get(name) for name in ("title", "body", "upload")):
        return None
    content = _raw_content(request, place, chosen_values)
    return plan_and_estimate.estimate(
        place.workspace, defaults.push_source, content, defaults=defaults, now=utc_now(), tried=tried
    )


def _find_upload(place: Place, public_id: str) -> Upload | None:
    """Return the workspace's upload with this public id, or `None` if there is none."""
    key = decode("upl", public_id)
    if key is None:
        return None
    upload: Upload | None = Upload.objects.of(place.workspace).filter(pk=key, test=False).first()
    return upload


# --- The outcome -----------------------------------------------------------------------------------------------------


@workspace_page("look", methods=("GET",))
def made(request: HttpRequest, place: Place, raw: UUID) -> HttpResponse:
    """Show the outcome of a raw item; the list of its items polls until all are done."""
    raw_item = get_object_or_404(RawItem.objects.of(place.workspace), pk=raw, deleted_at=None, test=False)
    made_outcome = outcome.read_outcome(place.workspace, raw_item)
    fragment = polling_fragment(
        request,
        "made",
        "pages/new/made_items.html",
        {"raw": raw_item, "seen": made_outcome, "public_url": settings.PUBLIC_URL},
        css_class="stack",
        interval_seconds=0 if made_outcome.is_done else _POLL_SECONDS,
    )
    if isinstance(fragment, HttpResponse):
        return fragment
    return render(request, "pages/new/made.html", {"raw": raw_item, "live": fragment})
