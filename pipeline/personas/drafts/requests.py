"""A draft is asked for, asked for again, and forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import Workspace
from config.core import dispatch, limits, states, work_queue
from config.core.errors import Conflict, Invalid
from config.core.middleware import request_id
from pipeline import plugins
from pipeline.models import PersonaDraft
from pipeline.plugins import ConfigInvalid
from pipeline.sources.base import Source
from pipeline.writers.persona_draft import posts_in

if TYPE_CHECKING:
    from datetime import datetime

    from pipeline.models import Persona

_FORGOTTEN_AT_ONCE = 500


def request(
    workspace: Workspace, *, persona: Persona | None, url: str, posts: str, by: str, now: datetime
) -> PersonaDraft:
    """Promise a draft from a page or feed, from pasted posts, or from both.

    Raises `Invalid` where neither is given or can be used, `Conflict` while too many are under way.
    """
    pasted = posts_in(posts)
    _refuse_unusable(url, pasted)
    with transaction.atomic():
        # Two at once must not both be the last one.
        Workspace.everywhere.select_for_update(no_key=True).get(pk=workspace.pk)
        open_ones = PersonaDraft.objects.of(workspace).open().count()
        if open_ones >= limits.PERSONA_DRAFTS_AT_ONCE:
            message = _("%(most)d drafts are under way already; wait until one of them is there.") % {
                "most": limits.PERSONA_DRAFTS_AT_ONCE
            }
            raise Conflict.because(code="too_many", message=message, field=None)
        draft: PersonaDraft = PersonaDraft.everywhere.create(
            workspace=workspace,
            persona=persona,
            url=url,
            posts=pasted,
            due_at=now,
            wake_at=now,
            requested_by=by[:200],
            request_id=request_id(),
            created_at=now,
        )
        dispatch.wake()
    return draft


def retry(draft: PersonaDraft, *, now: datetime) -> None:
    """Try a failed one again; what was read of the site is read anew. Raises `states.MoveRefused`."""
    states.move(
        draft,
        "queued",
        error=None,
        tries=0,
        finished_at=None,
        due_at=now,
        wake_at=now,
        **work_queue.overtake(),
    )
    dispatch.wake()


def forget(now: datetime) -> int:
    """Drafts that nobody needs any more, some at a time."""
    old = PersonaDraft.everywhere.filter(created_at__lt=now - limits.PERSONA_DRAFTS_KEPT)
    some = list(old.order_by("created_at").values_list("pk", flat=True)[:_FORGOTTEN_AT_ONCE])
    if not some:
        return 0
    return PersonaDraft.everywhere.filter(pk__in=some).delete()[0]


def _refuse_unusable(url: str, pasted: list[str]) -> None:
    if not url and not pasted:
        raise Invalid.one(field="url", code="required", message=_("Give a web address, or paste some posts."))
    if len(pasted) > limits.DRAFT_POSTS:
        message = _("These are more than %(most)d posts; take the best of them.") % {
            "most": limits.DRAFT_POSTS
        }
        raise Invalid.one(field="posts", code="too_many", message=message)
    if any(len(post) > limits.REFERENCE_POST_CHARACTERS for post in pasted):
        message = _("One of these has more than %(most)d characters; part posts by a line of three dashes.")
        told = message % {"most": limits.REFERENCE_POST_CHARACTERS}
        raise Invalid.one(field="posts", code="too_long", message=told)
    if url:
        try:
            plugins.get("sources", "scraper", Source).clean_config({"url": url})
        except ConfigInvalid as invalid:
            raise Invalid.one(field="url", code="invalid_address", message=str(invalid)) from invalid
