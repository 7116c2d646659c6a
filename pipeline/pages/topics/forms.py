"""Defines the form of a topic in the pool of a persona."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.pages.act_messages import first_part
from pipeline import limits

if TYPE_CHECKING:
    from pipeline.models import Persona, Topic

# Matches `https://example.org/ferries The ferries run again`; the text may be left out.
_EVIDENCE_LINE: Final = re.compile(r"(https?://\S+)(?:\s+(.+))?", re.IGNORECASE)


class TopicForm(forms.Form):
    """A topic: its subject, facts and evidence, and how often and when it may be used."""

    title = forms.CharField(
        label=_("Topic"),
        max_length=limits.TOPIC_TITLE_CHARACTERS,
        help_text=_("Subject of the posts"),
    )
    notes = forms.CharField(
        label=_("Facts"),
        required=False,
        max_length=limits.TOPIC_NOTES_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=_("Posts use only these facts"),
    )
    angles = forms.CharField(
        label=_("Angles"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("Angles, one per line"),
    )
    evidence = forms.CharField(
        label=_("Evidence"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("URLs or sentences, one per line"),
    )
    weight = forms.IntegerField(
        label=_("Weight"),
        min_value=1,
        max_value=limits.TOPIC_WEIGHT,
        initial=1,
        help_text=_("Twice the weight is used twice as often"),
    )
    cooldown_days = forms.IntegerField(
        label=_("Cooldown (days)"),
        min_value=0,
        max_value=limits.TOPIC_COOLDOWN_DAYS,
        initial=limits.TOPIC_COOLDOWN_DAYS_DEFAULT,
        help_text=_("Days before it is used again"),
    )
    max_per_month = forms.IntegerField(
        label=_("Maximum per month"),
        required=False,
        min_value=1,
        max_value=31,
        help_text=_("Leave empty for no limit"),
    )
    season_from = forms.CharField(
        label=_("Season from"),
        required=False,
        max_length=5,
        widget=forms.TextInput(attrs={"placeholder": "12-01"}),
        help_text=_("Leave empty for all year"),
    )
    season_to = forms.CharField(
        label=_("Season to"),
        required=False,
        max_length=5,
        help_text=_("Month and day"),
        widget=forms.TextInput(attrs={"placeholder": "12-24"}),
    )
    everybody = forms.BooleanField(label=_("Available to all personas"), required=False)
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)
    """The version of the topic that was shown; a new topic has none."""

    def field_of(self, path: str) -> str:
        """Return the field at which an error of this path is shown: `season_from` for `season.from`."""
        return first_part(path.replace("season.", "season_"))

    def changes(self, persona: Persona, topic: Topic) -> dict[str, Any]:
        """Return the values of an existing topic as `pipeline.personas.topics` takes them.

        Evidence whose line wasn't edited stays as it is stored.
        """
        unchanged = dict(zip(_evidence_lines(topic), topic.evidence, strict=True))
        lines = [" ".join(line.split()) for line in self.cleaned_data["evidence"].splitlines()]
        evidence = [unchanged.get(line) or _parse_evidence(line) for line in lines if line]
        return {**self.values(persona), "evidence": evidence}

    def values(self, persona: Persona) -> dict[str, Any]:
        """Return the values as `pipeline.personas.topics` takes them."""
        cleaned = self.cleaned_data
        season = {"from": cleaned["season_from"], "to": cleaned["season_to"]}
        return {
            **{
                name: cleaned[name] for name in ("title", "notes", "weight", "cooldown_days", "max_per_month")
            },
            "angles": cleaned["angles"].splitlines(),
            "evidence": [_parse_evidence(line) for line in cleaned["evidence"].splitlines() if line.strip()],
            "season": season if any(season.values()) else None,
            "persona_id": None if cleaned["everybody"] else persona.pk,
        }


def values_of(topic: Topic) -> dict[str, Any]:
    """Return the initial values of the form of a topic."""
    field_names = (
        "title",
        "notes",
        "weight",
        "cooldown_days",
        "max_per_month",
        "season_from",
        "season_to",
        "version",
    )
    return {
        **{name: getattr(topic, name) for name in field_names},
        "angles": "\n".join(topic.angles),
        "evidence": "\n".join(_evidence_lines(topic)),
        "everybody": topic.persona_id is None,
    }


def _parse_evidence(line: str) -> dict[str, str]:
    """Return URL and text of a line; a line without a URL is text alone."""
    line = line.strip()
    match = _EVIDENCE_LINE.fullmatch(line)
    return {"url": match[1], "text": match[2] or ""} if match else {"url": "", "text": line}


def _evidence_lines(topic: Topic) -> list[str]:
    """Return each piece of evidence as one line; line breaks of its text become spaces."""
    return [" ".join(f"{evidence['url']} {evidence['text']}".split()) for evidence in topic.evidence]
