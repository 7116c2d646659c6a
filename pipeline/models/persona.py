"""Personas with their brand kits, versions and drafts, and the pool of topics."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceQuerySet, WorkspaceRow
from config.core.clock import utc_now
from config.core.work_queue import DueModel, claim_indexes
from pipeline import limits

SECTIONS: Final = ("who_you_are", "voice", "banned_words", "required_structures", "reference_posts")
"""The sections of the editor: two texts and three lists."""
VERSIONED_FIELDS: Final = ("name", "handle", "language", "links", "brand", *SECTIONS, "approved_lines")
"""The fields whose change makes a new version."""


class Persona(WorkspaceRow):
    """A persona's current state; `PersonaVersion` keeps what each generation was made with."""

    name = models.CharField(max_length=120)
    handle = models.CharField(max_length=60, blank=True)
    language = models.CharField(max_length=35, default="en")
    who_you_are = models.TextField(blank=True)
    """The facts that may be stated about the persona, and its audience."""
    voice = models.TextField(blank=True)
    banned_words = models.JSONField(default=list)
    """Words and phrases that no draft may contain, in upper or lower case."""
    required_structures = models.JSONField(default=list)
    """A list of `{"kind", "most" | "text"}`; `engines/persona_rules.py` says what each kind requires."""
    reference_posts = models.JSONField(default=list)
    """Posts that sound as the persona does: examples of the voice, never a source of facts."""
    approved_lines = models.JSONField(default=list)
    """Sentences that may be published word for word, without a model."""
    links = models.JSONField(default=list)
    brand = models.JSONField(default=dict)
    """`{"primary": "#…", "accent": "#…", "font": …, "portrait": asset id, "logo": asset id}`; every key optional."""
    is_sample = models.BooleanField(default=False, db_default=False)
    """Part of the sample data, which is removed as a whole."""
    version = models.PositiveIntegerField(default=1)
    deleted_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "persona"
        indexes: ClassVar = [models.Index(fields=["workspace", "-id"], name="persona_list")]  # GET /personas


class PersonaVersion(WorkspaceRow):
    """A persona's fields at one version. A row is never changed."""

    persona = models.ForeignKey(Persona, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    content = models.JSONField()
    """The values of the fields in `VERSIONED_FIELDS`, by name."""
    made_by = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "persona_version"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["persona", "number"], name="persona_version_once")
        ]


class Topic(WorkspaceRow):
    """Something that a persona may write about without a source document.

    A topic with a `source` belongs to that source's own list (`config.topics`) and is picked by it alone.
    """

    test = models.BooleanField(default=False)
    persona = models.ForeignKey(Persona, null=True, on_delete=models.SET_NULL, related_name="topics")
    """The only persona that may use the topic; `None` for every persona of the workspace."""
    source = models.ForeignKey("pipeline.Source", null=True, on_delete=models.CASCADE, related_name="topics")
    title = models.CharField(max_length=300)
    notes = models.TextField(blank=True)
    """The facts that may be stated about the topic."""
    angles = models.JSONField(default=list)
    """Angles to take; without any, the whole topic is one angle."""
    evidence = models.JSONField(default=list)
    """A list of `{"url", "text"}`, one of the two possibly empty; the texts may be stated as facts."""
    weight = models.PositiveSmallIntegerField(default=1)
    cooldown_days = models.PositiveSmallIntegerField(default=limits.TOPIC_COOLDOWN_DAYS_DEFAULT)
    """For how many days the topic isn't picked again with the same angle."""
    max_per_month = models.PositiveSmallIntegerField(null=True)
    season_from = models.CharField(max_length=5, blank=True)
    """The first day as `MM-DD`. A season whose `season_to` is earlier spans the new year; both or neither are set."""
    season_to = models.CharField(max_length=5, blank=True)
    is_active = models.BooleanField(default=True)
    last_used_at = models.DateTimeField(null=True)
    is_sample = models.BooleanField(default=False, db_default=False)
    """Part of the sample data, which is removed as a whole."""
    version = models.PositiveIntegerField(default=1)
    deleted_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "topic"
        constraints: ClassVar = [
            # A source's own list is written at its first pick; two picks at once write it once.
            models.UniqueConstraint(
                fields=["source", "title"],
                condition=models.Q(source__isnull=False),
                name="topic_of_source_once",
            )
        ]
        indexes: ClassVar = [
            models.Index(fields=["workspace", "test", "-id"], name="topic_list")  # GET /topics, and each pick
        ]


class PersonaDraftStatus(models.TextChoices):
    QUEUED = "queued", _("Queued")
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")


class PersonaDraftQuerySet(models.QuerySet[Any]):
    """The filters of drafts that pages and doctor share."""

    def open(self) -> Self:
        return self.filter(status__in=[PersonaDraftStatus.QUEUED, PersonaDraftStatus.RUNNING])

    def failed(self) -> Self:
        return self.filter(status=PersonaDraftStatus.FAILED)


class OwnPersonaDrafts(WorkspaceQuerySet[Any], PersonaDraftQuerySet):  # type: ignore[override]
    """The same filters, bound to one workspace."""


class PersonaDraft(WorkspaceRow, DueModel):
    """A requested draft of a persona and its result.

    It fills a form; the persona changes only when that is saved.
    """

    persona = models.ForeignKey(
        "pipeline.Persona", null=True, on_delete=models.CASCADE, related_name="drafts"
    )
    """The persona whose editor the draft fills; `None` for one that doesn't exist yet."""
    url = models.CharField(max_length=2048, blank=True)
    posts = models.JSONField(default=list)
    """Past posts as they were pasted."""
    status = models.CharField(max_length=10, choices=PersonaDraftStatus, default=PersonaDraftStatus.QUEUED)
    material = models.JSONField(null=True)
    """The text that was read from the site, and the posts; emptied when the draft has ended.

    It is stored so that a retried task doesn't read the site again.
    """
    sections = models.JSONField(null=True)
    """The draft, by the names of the persona's fields."""
    is_offline = models.BooleanField(default=True)
    """True if the draft was made without AI."""
    tries = models.PositiveSmallIntegerField(default=0)
    """The number of failed calls to a model that may be made again."""
    error = models.JSONField(null=True)
    """`{"code", "message"}`: why there is no draft, and what to do next."""
    requested_by = models.CharField(max_length=200, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=utc_now)
    finished_at = models.DateTimeField(null=True)

    everywhere: ClassVar = PersonaDraftQuerySet.as_manager()
    objects: ClassVar = OwnPersonaDrafts.as_manager()

    class Meta(WorkspaceRow.Meta):
        db_table = "draft"
        indexes: ClassVar = [
            *claim_indexes("draft"),
            # Retention deletes old drafts.
            models.Index(fields=["created_at"], name="draft_forgotten"),
        ]
