"""Previews and adds several sources from lines or an OPML file, and exports sources as OPML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core import signing
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.pages import kept_forms
from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.page_access import Place, workspace_page
from config.core import limits as core_limits
from config.core.clock import utc_now
from config.core.errors import AppError
from config.core.middleware import body_limit
from pipeline import limits
from pipeline.ingest import collect
from pipeline.ingest.opml import ListedAddress, read_opml, write_opml
from pipeline.ingest.register_many_sources import PlannedSource, plan_all, register_all
from pipeline.models import Source
from pipeline.pages.new.forms import address_in
from pipeline.pages.sources.listing import sources_with_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest

_SALT: Final = "sources.added"
_UNDO_SECONDS: Final = 24 * 3600


class SeveralForm(forms.Form):
    """Parses both fields into `listed`; the lines of a file are then shown in the field of addresses."""

    listed: list[ListedAddress]
    addresses = forms.CharField(
        label=gettext_lazy("Addresses"),
        required=False,
        max_length=limits.SOURCES_AT_ONCE * core_limits.URL_CHARACTERS,
        help_text=gettext_lazy(
            "One per line, with a name behind it if you like: feeds, websites, YouTube channels or TikTok accounts"
        ),
        widget=forms.Textarea(
            attrs={"rows": 8, "spellcheck": "false", "placeholder": "https://example.org/news Harbour news"}
        ),
    )
    file = forms.FileField(
        label=gettext_lazy("Or an OPML file"),
        required=False,
        help_text=gettext_lazy("Exported from a feed reader"),
        widget=forms.FileInput(attrs={"accept": ".opml,.xml"}),
    )

    def clean_addresses(self) -> list[ListedAddress]:
        """Return the addresses of all lines."""
        return [entry for line in self.cleaned_data["addresses"].splitlines() for entry in parse_line(line)]

    def clean_file(self) -> list[ListedAddress]:
        """Return the addresses of the OPML file, or none without a file."""
        file = self.cleaned_data["file"]
        if not file:
            return []
        if file.size > limits.OPML_BYTES:
            raise forms.ValidationError(_("Choose a file of at most 1 MB."), code="too_large")
        try:
            listed = read_opml(file.read())
        except AppError as error:
            raise forms.ValidationError(error.detail[0].message, code="file") from error
        return [ListedAddress(address_in(entry.address), entry.name, entry.text) for entry in listed]

    def clean(self) -> dict[str, Any]:
        """Join the lines of both fields in `listed`, and refuse more than `SOURCES_AT_ONCE`."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        self.listed = [*cleaned.get("addresses", ()), *cleaned.get("file", ())]
        if cleaned.get("file"):
            form_data: Any = self.data
            merged_data = form_data.copy()
            merged_data["addresses"] = "\n".join(entry.text for entry in self.listed)
            self.data = merged_data
        if not self.errors and not self.listed:
            self.add_error("addresses", _("Enter addresses, or choose a file."))
        if len(self.listed) > limits.SOURCES_AT_ONCE:
            message = _("%(count)d addresses: add at most %(most)d at a time.")
            self.add_error("addresses", message % {"count": len(self.listed), "most": limits.SOURCES_AT_ONCE})
        return cleaned


def parse_line(line: str) -> list[ListedAddress]:
    """Parse a line: an address with an optional name, or several addresses; any other line keeps its text."""
    words = [word.strip(",;") for word in line.split()]
    if not any(words):
        return []
    with_scheme = [word for word in words if "://" in word and address_in(word)]
    addresses = with_scheme or [word for word in words if address_in(word)]
    if len(addresses) == len(words):
        return [ListedAddress(address_in(word)) for word in addresses]
    if len(with_scheme) == 1 or (not with_scheme and addresses and addresses[0] == words[0]):
        name = " ".join(word for word in words if word != addresses[0])[: core_limits.NAME_CHARACTERS]
        return [ListedAddress(address_in(addresses[0]), name)]
    return [ListedAddress("", "", line.strip())]


@body_limit(limits.OPML_FORM_BYTES)
@workspace_page("edit")
def sources_several(request: HttpRequest, place: Place) -> HttpResponse:
    """Preview what each line would become; with the field `add`, register the lines as sources.

    Lines that are refused stay in the form.
    """
    is_sent = request.method == "POST"
    form = SeveralForm(request.POST, request.FILES) if is_sent else kept_forms.form_for(request, SeveralForm)
    if not is_sent or not form.is_valid():
        return _render_form(request, form)
    if "add" not in request.POST:
        return _render_form(request, form, plan_all(place.workspace, form.listed, now=utc_now()))
    if not kept_forms.is_first_sending(request):
        return redirect(place.url_of("sources_page"))
    registered = register_all(place.workspace, form.listed, now=utc_now())
    if registered.added:
        message = ngettext("%(count)d source added.", "%(count)d sources added.", len(registered.added))
        added = signing.dumps([key.hex for key in registered.added], salt=_SALT, compress=True)
        address = place.url_of("sources_several_undo")
        offer_undo(request, message % {"count": len(registered.added)}, address, {"added": added})
    if registered.known:
        message = ngettext("%(count)d was there already.", "%(count)d were there already.", registered.known)
        messages.info(request, message % {"count": registered.known})
    if not registered.refused:
        return redirect(place.url_of("sources_page"))
    remaining_form = SeveralForm(
        initial={"addresses": "\n".join(planned.listed.text for planned in registered.refused)}
    )
    return _render_form(request, remaining_form, registered.refused)


def _render_form(
    request: HttpRequest, form: SeveralForm, planned: Sequence[PlannedSource] = ()
) -> HttpResponse:
    """Render the form with the planned lines, those that need a correction first."""
    refused = [entry for entry in planned if entry.refusal]
    new = [entry for entry in planned if entry.source is not None]
    known = [entry for entry in planned if entry.source is None and not entry.refusal]
    context = {
        "form": form,
        "planned": [*refused, *new, *known],
        "refused": refused,
        "new": new,
        "known": known,
        "newest": limits.FIRST_POLL_NEWEST,
    }
    return render(request, "pages/sources/several.html", context)


@workspace_page("look", methods=("GET",))
def sources_export(request: HttpRequest, place: Place) -> HttpResponse:
    """Download the sources that have an address as an OPML file."""
    del request
    rows = sources_with_page(place).only("name", "type", "config").order_by("name", "id")
    response = HttpResponse(write_opml(rows, place.workspace.name), content_type="text/x-opml; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="sources.opml"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


@workspace_page("edit", methods=("POST",))
def sources_several_undo(request: HttpRequest, place: Place) -> HttpResponse:
    """Delete the sources of the signed list in the field `added`, within a day."""
    try:
        added_keys = signing.loads(request.POST.get("added", ""), salt=_SALT, max_age=_UNDO_SECONDS)
    except signing.BadSignature:
        messages.error(request, _("Too late to undo. Delete each source on its page."))
        return redirect(place.url_of("sources_page"))
    rows = Source.objects.of(place.workspace).filter(
        pk__in=[UUID(hex=key) for key in added_keys], deleted_at=None
    )
    count = 0
    for row in rows:
        with report_errors(request):
            collect.delete(row, now=utc_now())
            count += 1
    message = ngettext("%(count)d source removed.", "%(count)d sources removed.", count)
    messages.success(request, message % {"count": count})
    return redirect(place.url_of("sources_page"))
