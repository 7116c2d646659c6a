"""Several links that were pasted at once: each is read, and an item is made of each."""

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
from pipeline.ingest import generation_plan, pasted_url, raw_content, store_raw_item
from pipeline.models import WorkspaceDefaults
from pipeline.models.raw_item import PASTED_PREFIX
from pipeline.pages.new.forms import WORDS_CHARACTERS, ChosenForm, address_in
from pipeline.pages.new.price import is_agreed, known_choices, price_context

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.http import HttpRequest, HttpResponse

    from accounts.pages.page_access import Place

_SALT: Final = "create.links"
_SECONDS: Final = 30
"""After that no further link is read: somebody waits."""
_DAY_SECONDS: Final = 24 * 3600


@dataclass(frozen=True)
class _Page:
    url: str
    title: str
    body: str


@dataclass
class _Links:
    """What was read, and of what couldn't be read the link and the reason."""

    pages: list[_Page] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)


class LinksForm(ChosenForm):
    """`found` is what was read behind the links, signed."""

    found = forms.CharField(widget=forms.HiddenInput)
    price = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def field_of(self, path: str) -> str:
        return path.partition("[")[0]


def links_in(text: str) -> list[str]:
    """The links, each once, where the text is two or more and nothing else; empty for every other text."""
    addresses = [address_in(one.strip(",;")) for one in text.split()]
    if len(addresses) < 2 or not all(addresses):
        return []
    return list(dict.fromkeys(addresses))


def read(request: HttpRequest, place: Place, links: Sequence[str]) -> HttpResponse:
    """The second step. Raises `Invalid` for too many links, and where none can be read."""
    if len(links) > limits.LINKS_AT_ONCE:
        message = _("%(count)d links: paste at most %(most)d at a time.")
        said = message % {"count": len(links), "most": limits.LINKS_AT_ONCE}
        raise Invalid.one("what", "too_many", said)
    found = _read_all(links)
    if not found.pages:
        raise Invalid.one("what", "unread", "\n".join(f"{url}: {why}" for url, why in found.unread))
    defaults = WorkspaceDefaults.objects.of(place.workspace).get()
    initial = {
        "engines": defaults.engines,
        "persona": encode("per", defaults.persona_id),
        "variants": 1,
        "found": signing.dumps(
            [[one.url, one.title, one.body] for one in found.pages], salt=_SALT, compress=True
        ),
    }
    return _show(request, place, LinksForm(workspace=place.workspace, initial=initial), found)


def make(request: HttpRequest, place: Place) -> HttpResponse:
    """All of them or none."""
    found = _Links(_opened(request.POST.get("found", "")))
    if not found.pages:
        messages.error(request, _("Expired. Paste the links again."))
        return redirect(place.address("making"))
    form = LinksForm(request.POST, workspace=place.workspace)
    if form.is_valid() and request.POST["links"] == "yes":
        with report_errors(request, form):
            defaults = _defaults(place)
            contents = _contents(request, form.cleaned_data, found.pages)
            price, _why_not, has_plan = _priced(place, contents, defaults)
            if not has_plan:
                form.add_error("engines", _("None of these formats can be made of these pages."))
            elif is_agreed(price, form.cleaned_data["price"]):
                store_raw_item.push_all(
                    place.workspace, defaults.push_source, contents, defaults=defaults, now=utc_now()
                )
                said = ngettext(
                    "Items of %(count)d link are made.",
                    "Items of each of %(count)d links are made.",
                    len(contents),
                )
                messages.success(request, said % {"count": len(contents)})
                return redirect(place.address("items_page"))
    return _show(request, place, form, found)


def _read_all(links: Sequence[str]) -> _Links:
    found = _Links()
    until = monotonic() + _SECONDS
    for url in links:
        if monotonic() > until:
            found.unread.append((url, _("There was no time left to read it. Paste it again.")))
            continue
        page = pasted_url.read_page(url, now=utc_now())
        if page.entry is None:
            found.unread.append((url, page.message))
        elif len(page.entry.body) > WORDS_CHARACTERS:
            message = _("More than %(most)s characters. Paste a part of its words instead.")
            found.unread.append((url, message % {"most": f"{WORDS_CHARACTERS:,}"}))
        else:
            title = page.entry.title or pasted_url.headline_of(page.entry.body)
            address = page.entry.url if 0 < len(page.entry.url) <= core_limits.URL_CHARACTERS else url
            found.pages.append(_Page(address, title, page.entry.body))
    return found


def _opened(text: str) -> list[_Page]:
    try:
        return [_Page(*one) for one in signing.loads(text, salt=_SALT, max_age=_DAY_SECONDS)]
    except signing.BadSignature:
        return []


def _defaults(place: Place) -> WorkspaceDefaults:
    rows = WorkspaceDefaults.objects.of(place.workspace).select_related("push_source")
    found: WorkspaceDefaults = rows.get()
    return found


def _contents(
    request: HttpRequest, values: Mapping[str, Any], pages: Sequence[_Page]
) -> list[raw_content.RawContent]:
    once = request.POST.get("once", "")[:64]
    chosen = known_choices(values)
    return [
        raw_content.RawContent(
            # Of one showing of the form, as that of a single text.
            external_id=f"{PASTED_PREFIX}{once}:{number}" if once else "",
            url=page.url,
            title=page.title[: limits.TITLE_CHARACTERS],
            body=page.body,
            engines=chosen["engines"],
            variants=chosen["variants"],
            persona_id=decode("per", str(values.get("persona") or "")),
        )
        for number, page in enumerate(pages)
    ]


def _priced(
    place: Place, contents: Sequence[raw_content.RawContent], defaults: WorkspaceDefaults
) -> tuple[int, list[str], bool]:
    """The price of all together, why some formats are skipped, and whether anything is made."""
    plans = [
        generation_plan.estimate(place.workspace, defaults.push_source, one, defaults=defaults, now=utc_now())
        for one in contents
        if one.engines
    ]
    why_not = dict.fromkeys(str(reason) for plan in plans for reason in plan.why_not)
    return sum(plan.price for plan in plans), list(why_not), any(plan.engines for plan in plans)


def _show(request: HttpRequest, place: Place, form: LinksForm, found: _Links) -> HttpResponse:
    values = {name: form[name].value() or "" for name in form.fields}
    price, why_not, has_plan = _priced(place, _contents(request, values, found.pages), _defaults(place))
    is_create = form.is_bound and request.POST.get("links") == "yes" and not form.errors
    context = {
        **price_context(place, price, why_not, has_plan=has_plan),
        "form": form,
        "pages": found.pages,
        "unread": found.unread,
        "why_no_price": _("Choose a format to see the price."),
        "is_new_price": is_create and has_plan,
    }
    return render(request, "pages/new/links.html", context)
