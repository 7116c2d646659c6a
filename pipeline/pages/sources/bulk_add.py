"""Several sources added at once, by lines or a feed reader's OPML file, after a look at each line; and exported as one."""

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

from accounts.pages import form_recovery
from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.page_access import Place, page
from config.core import limits as core_limits
from config.core.clock import utc_now
from config.core.errors import AppError
from config.core.middleware import body_limit
from pipeline import limits
from pipeline.ingest import collect
from pipeline.ingest.opml import ListedAddress, read_opml, write_opml
from pipeline.ingest.source_lists import PlannedSource, plan_all, register_all
from pipeline.models import Source
from pipeline.pages.new.forms import address_in
from pipeline.pages.sources.listing import all_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest

_SALT: Final = "sources.added"
_UNDO_SECONDS: Final = 24 * 3600


class SeveralForm(forms.Form):
    """`listed` are the lines of both fields; those of a file are shown among the others afterwards, to be changed."""

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
        return [
            one for line in self.cleaned_data["addresses"].splitlines() for one in addresses_of_line(line)
        ]

    def clean_file(self) -> list[ListedAddress]:
        file = self.cleaned_data["file"]
        if not file:
            return []
        if file.size > limits.OPML_BYTES:
            raise forms.ValidationError(_("Choose a file of at most 1 MB."), code="too_large")
        try:
            found = read_opml(file.read())
        except AppError as error:
            raise forms.ValidationError(error.detail[0].message, code="file") from error
        return [ListedAddress(address_in(one.address), one.name, one.text) for one in found]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        self.listed = [*cleaned.get("addresses", ()), *cleaned.get("file", ())]
        if cleaned.get("file"):
            sent: Any = self.data
            merged = sent.copy()
            merged["addresses"] = "\n".join(one.text for one in self.listed)
            self.data = merged
        if not self.errors and not self.listed:
            self.add_error("addresses", _("Enter addresses, or choose a file."))
        if len(self.listed) > limits.SOURCES_AT_ONCE:
            message = _("%(count)d addresses: add at most %(most)d at a time.")
            self.add_error("addresses", message % {"count": len(self.listed), "most": limits.SOURCES_AT_ONCE})
        return cleaned


def addresses_of_line(line: str) -> list[ListedAddress]:
    """An address with an optional name beside it, or several addresses; a line without any keeps its text."""
    words = [word.strip(",;") for word in line.split()]
    if not any(words):
        return []
    schemed = [word for word in words if "://" in word and address_in(word)]
    found = schemed or [word for word in words if address_in(word)]
    if len(found) == len(words):
        return [ListedAddress(address_in(word)) for word in found]
    if len(schemed) == 1 or (not schemed and found and found[0] == words[0]):
        name = " ".join(word for word in words if word != found[0])[: core_limits.NAME_CHARACTERS]
        return [ListedAddress(address_in(found[0]), name)]
    return [ListedAddress("", "", line.strip())]


@body_limit(limits.OPML_FORM_BYTES)
@page("edit")
def sources_several(request: HttpRequest, place: Place) -> HttpResponse:
    """Says of each line what would become of it; with `add` the lines become sources."""
    is_sent = request.method == "POST"
    form = (
        SeveralForm(request.POST, request.FILES) if is_sent else form_recovery.form_for(request, SeveralForm)
    )
    if not is_sent or not form.is_valid():
        return _show(request, form)
    if "add" not in request.POST:
        return _show(request, form, plan_all(place.workspace, form.listed, now=utc_now()))
    if not form_recovery.is_first_sending(request):
        return redirect(place.address("sources_page"))
    done = register_all(place.workspace, form.listed, now=utc_now())
    if done.added:
        said = ngettext("%(count)d source added.", "%(count)d sources added.", len(done.added))
        added = signing.dumps([key.hex for key in done.added], salt=_SALT, compress=True)
        address = place.address("sources_several_undo")
        offer_undo(request, said % {"count": len(done.added)}, address, {"added": added})
    if done.known:
        said = ngettext("%(count)d was there already.", "%(count)d were there already.", done.known)
        messages.info(request, said % {"count": done.known})
    if not done.refused:
        return redirect(place.address("sources_page"))
    rest = SeveralForm(initial={"addresses": "\n".join(one.listed.text for one in done.refused)})
    return _show(request, rest, done.refused)


def _show(request: HttpRequest, form: SeveralForm, planned: Sequence[PlannedSource] = ()) -> HttpResponse:
    """What a person has to do something about stands first."""
    refused = [one for one in planned if one.refusal]
    new = [one for one in planned if one.source is not None]
    known = [one for one in planned if one.source is None and not one.refusal]
    context = {
        "form": form,
        "planned": [*refused, *new, *known],
        "refused": refused,
        "new": new,
        "known": known,
        "newest": limits.FIRST_POLL_NEWEST,
    }
    return render(request, "pages/sources/several.html", context)


@page("look", methods=("GET",))
def sources_export(request: HttpRequest, place: Place) -> HttpResponse:
    """The sources as an OPML file; not what is only sent to, or made of topics."""
    del request
    rows = all_of(place).only("name", "type", "config").order_by("name", "id")
    answer = HttpResponse(write_opml(rows, place.workspace.name), content_type="text/x-opml; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="sources.opml"'
    answer["X-Content-Type-Options"] = "nosniff"
    return answer


@page("edit", methods=("POST",))
def sources_several_undo(request: HttpRequest, place: Place) -> HttpResponse:
    try:
        added = signing.loads(request.POST.get("added", ""), salt=_SALT, max_age=_UNDO_SECONDS)
    except signing.BadSignature:
        messages.error(request, _("Too late to undo. Delete each source on its page."))
        return redirect(place.address("sources_page"))
    rows = Source.objects.of(place.workspace).filter(pk__in=[UUID(hex=key) for key in added], deleted_at=None)
    count = 0
    for row in rows:
        with report_errors(request):
            collect.delete(row, now=utc_now())
            count += 1
    said = ngettext("%(count)d source removed.", "%(count)d sources removed.", count)
    messages.success(request, said % {"count": count})
    return redirect(place.address("sources_page"))
