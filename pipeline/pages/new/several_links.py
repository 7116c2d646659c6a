"""Reads the pages of several links that are pasted at once, and makes items of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import messages
from django.core import signing
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.pages.act_messages import report_errors
from config.core import limits as core_limits
from config.core.clock import utc_now
from config.core.errors import Invalid
from config.core.ids import decode, encode
from pipeline import limits
from pipeline.ingest import pasted_url, plan_and_estimate, raw_content, store_raw_item
from pipeline.models import WorkspaceDefaults
from pipeline.models.raw_item import PASTED_PREFIX
from pipeline.pages.new.forms import MAX_TEXT_CHARACTERS, ChosenForm, address_in
from pipeline.pages.new.price import is_agreed, known_choices, price_context, why_no_format

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from django.http import HttpRequest, HttpResponse

    from accounts.pages.page_access import Place
    from pipeline.generate.generation_plan import GenerationPlan

_SALT: Final = "create.links"
_READ_SECONDS: Final = 30
"""The seconds after which no further link is read, because a person waits for the page."""
_SIGNATURE_SECONDS: Final = 24 * 3600
"""How many seconds the signed pages of a form can be used."""


@dataclass(frozen=True)
class _LinkedPage:
    """A page behind a link: its address, title and text."""

    url: str
    title: str
    body: str


@dataclass
class _ReadLinks:
    """The pages that were read; `unread` has the link and the reason of each page that wasn't."""

    pages: list[_LinkedPage] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)


class LinksForm(ChosenForm):
    """The choices for all links together; `found` holds the pages that were read, as a signed text."""

    found = forms.CharField(widget=forms.HiddenInput)
    price = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def field_of(self, path: str) -> str:
        """Return the form's field for the path of an error."""
        return path.partition("[")[0]


def links_in(text: str) -> list[str]:
    """Return the distinct links if the text is two or more links and nothing else, or an empty list.

    The list has a single link if the same one was pasted twice.
    """
    addresses = [address_in(word.strip(",;")) for word in text.split()]
    if len(addresses) < 2 or not all(addresses):
        return []
    return list(dict.fromkeys(addresses))


def read_and_show(request: HttpRequest, place: Place, links: Sequence[str]) -> HttpResponse:
    """Read the pages and show the second step.

    Raises `Invalid` if there are more than `LINKS_AT_ONCE` links, or if no page can be read.
    """
    if len(links) > limits.LINKS_AT_ONCE:
        message = _("%(count)d links: paste at most %(most)d at a time.")
        error_message = message % {"count": len(links), "most": limits.LINKS_AT_ONCE}
        raise Invalid.one("what", "too_many", error_message)
    read_links = _read_links(links)
    if not read_links.pages:
        raise Invalid.one(
            "what", "unread", "\n".join(f"{url}: {reason}" for url, reason in read_links.unread)
        )
    defaults = WorkspaceDefaults.objects.of(place.workspace).get()
    initial = {
        "engines": defaults.engines,
        "persona": encode("per", defaults.persona_id),
        "variants": 1,
        "found": signing.dumps(
            [[page.url, page.title, page.body] for page in read_links.pages], salt=_SALT, compress=True
        ),
    }
    return _render_form(request, place, LinksForm(workspace=place.workspace, initial=initial), read_links)


def make_items(request: HttpRequest, place: Place) -> HttpResponse:
    """Make the items of all pages and redirect to the list of items, or show the form again and make none.

    The form is shown again if it has errors, if only the choices changed, or if the price is higher than was shown.
    """
    read_links = _ReadLinks(_load_signed_pages(request.POST.get("found", "")))
    if not read_links.pages:
        messages.error(request, _("Expired. Paste the links again."))
        return redirect(place.url_of("making"))
    form = LinksForm(request.POST, workspace=place.workspace)
    if form.is_valid() and request.POST["links"] == "yes":
        with report_errors(request, form):
            defaults = _load_defaults(place)
            contents = _raw_contents(request, form.cleaned_data, read_links.pages)
            plans = _estimate_plans(place, contents, defaults)
            if not any(plan.engines for plan in plans):
                form.add_error("engines", _("None of these formats can be made of these pages."))
            elif is_agreed(sum(plan.price for plan in plans), form.cleaned_data["price"]):
                store_raw_item.push_all(
                    place.workspace, defaults.push_source, contents, defaults=defaults, now=utc_now()
                )
                success_message = ngettext(
                    "Items of %(count)d link are made.",
                    "Items of each of %(count)d links are made.",
                    len(contents),
                )
                messages.success(request, success_message % {"count": len(contents)})
                return redirect(place.url_of("items_page"))
    return _render_form(request, place, form, read_links)


def _read_links(links: Sequence[str]) -> _ReadLinks:
    """Read the page of each link; those that fail, are too long or come after `_READ_SECONDS` are unread."""
    read_links = _ReadLinks()
    deadline = monotonic() + _READ_SECONDS
    for url in links:
        if monotonic() > deadline:
            read_links.unread.append((url, _("There was no time left to read it. Paste it again.")))
            continue
        page = pasted_url.read_page(url, now=utc_now())
        if page.entry is None:
            read_links.unread.append((url, page.message))
        elif len(page.entry.body) > MAX_TEXT_CHARACTERS:
            message = _("More than %(most)s characters. Paste a part of its words instead.")
            read_links.unread.append((url, message % {"most": f"{MAX_TEXT_CHARACTERS:,}"}))
        else:
            title = page.entry.title or pasted_url.headline_of(page.entry.body)
            address = page.entry.url if 0 < len(page.entry.url) <= core_limits.URL_CHARACTERS else url
            read_links.pages.append(_LinkedPage(address, title, page.entry.body))
    return read_links


def _load_signed_pages(text: str) -> list[_LinkedPage]:
    """Return the pages of the signed field, or none if the signature is wrong or has expired."""
    try:
        return [
            _LinkedPage(*fields) for fields in signing.loads(text, salt=_SALT, max_age=_SIGNATURE_SECONDS)
        ]
    except signing.BadSignature:
        return []


def _load_defaults(place: Place) -> WorkspaceDefaults:
    """Return the workspace's defaults with the source of pushed content."""
    rows = WorkspaceDefaults.objects.of(place.workspace).select_related("push_source")
    defaults: WorkspaceDefaults = rows.get()
    return defaults


def _raw_contents(
    request: HttpRequest, values: Mapping[str, Any], pages: Sequence[_LinkedPage]
) -> list[raw_content.RawContent]:
    """Return one raw content for each page, with the choices of the form."""
    form_key = request.POST.get("once", "")[:64]
    engine_choices = known_choices(values)
    return [
        raw_content.RawContent(
            # The key belongs to one rendering of the form, so that a double click makes the items once.
            external_id=f"{PASTED_PREFIX}{form_key}:{number}" if form_key else "",
            url=page.url,
            title=page.title[: limits.TITLE_CHARACTERS],
            body=page.body,
            engines=engine_choices["engines"],
            variants=engine_choices["variants"],
            persona_id=decode("per", str(values.get("persona") or "")),
        )
        for number, page in enumerate(pages)
    ]


def _estimate_plans(
    place: Place,
    contents: Sequence[raw_content.RawContent],
    defaults: WorkspaceDefaults,
    *,
    tried: Container[str] | None = None,
) -> list[GenerationPlan]:
    """Return what would be made of each page; `tried` is as in `Acceptance.plan`."""
    return [
        plan_and_estimate.estimate(
            place.workspace, defaults.push_source, content, defaults=defaults, now=utc_now(), tried=tried
        )
        for content in contents
        if content.engines
    ]


def _refusals_of_all(plans: Sequence[GenerationPlan]) -> dict[str, str]:
    """Return the formats that can be made of no page, each with the reason of the first page."""
    first, *others = plans
    return {
        name: reason
        for name, reason in first.refusals.items()
        if all(name in plan.refusals for plan in others)
    }


def _render_form(request: HttpRequest, place: Place, form: LinksForm, read_links: _ReadLinks) -> HttpResponse:
    """Render the second step with the price of its choices, and disable the formats that no page can be made into."""
    values = {name: form[name].value() or "" for name in form.fields}
    contents = _raw_contents(request, {**values, "engines": form.offered_formats}, read_links.pages)
    plans = _estimate_plans(place, contents, _load_defaults(place), tried=form.tried_formats)
    chosen = known_choices({"engines": form.block_formats(_refusals_of_all(plans))})["engines"]
    chosen_plans = [plan.narrowed_to(chosen) for plan in plans]
    has_plan = any(plan.engines for plan in chosen_plans)
    why_not = dict.fromkeys(reason for plan in chosen_plans for reason in plan.why_not)
    is_create = form.is_bound and request.POST.get("links") == "yes" and not form.errors
    context = {
        **price_context(place, sum(plan.price for plan in chosen_plans), list(why_not), has_plan=has_plan),
        "form": form,
        "pages": read_links.pages,
        "unread": read_links.unread,
        "why_no_price": why_no_format(form),
        # The form had no error, so it is shown again only because the price changed.
        "is_new_price": is_create and has_plan,
    }
    return render(request, "pages/new/links.html", context)
