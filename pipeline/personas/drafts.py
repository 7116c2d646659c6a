"""Drafts personas from a site or past posts: requests, makes and deletes the drafts."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import Workspace
from config.core import dispatcher, states, work_queue
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.errors import Conflict, Invalid
from config.core.http_client import shared
from config.core.middleware import request_id
from pipeline import limits, plugins
from pipeline.generate.model.metered_client import LostLease, open_client
from pipeline.generate.model.spending_caps import WAITING_CODES
from pipeline.models import PersonaDraft, PersonaDraftStatus
from pipeline.plugins import ConfigInvalid, NeedsReconnect, PluginError, Refused, TryLater
from pipeline.sources.base import Source, host_in
from pipeline.switches import host_lock
from pipeline.switches.availability import environment_of_source
from pipeline.text.plain_text import plain_text, seen_text
from pipeline.writers.claude.persona_draft import draft_with_model
from pipeline.writers.persona_drafts import MAX_POST_CHARACTERS, PersonaMaterial, draft_without_ai, posts_in

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pipeline.models import Persona
    from pipeline.sources.base import Entry, Fetch

_DELETED_AT_ONCE = 500
POSTS_READ: Final = 40
"""The number of a feed's newest entries that are read."""
_HARMLESS: Final = frozenset({"no_text", "needs_javascript", "only_links", "only_title"})
"""Reasons to leave a page out that don't fail the draft, because there may be other material."""
log = structlog.get_logger(__name__)

MODEL_TRIES: Final = 3
"""The most tries; a person waits for the draft, so a longer outage is reported and the person decides."""


def request(
    workspace: Workspace, *, persona: Persona | None, url: str, posts: str, by: str, now: datetime
) -> PersonaDraft:
    """Queue a draft from a page or feed, from pasted posts, or from both.

    Raises `Invalid` if neither is given or one of them can't be used, and `Conflict` if too many drafts are under
    way.
    """
    pasted = posts_in(posts)
    _refuse_unusable(url, pasted)
    with transaction.atomic():
        # Two requests at once must not both take the last place.
        Workspace.everywhere.select_for_update(no_key=True).get(pk=workspace.pk)
        open_count = PersonaDraft.objects.of(workspace).open().count()
        if open_count >= limits.PERSONA_DRAFTS_AT_ONCE:
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
        dispatcher.wake()
    return draft


def retry(draft: PersonaDraft, *, now: datetime) -> None:
    """Try a failed draft again, with its site. Raises `states.MoveRefused` if its status doesn't allow that."""
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
    dispatcher.wake()


def forget(now: datetime) -> int:
    """Delete some of the drafts older than `limits.PERSONA_DRAFTS_KEPT`, and return the number of deleted rows."""
    old = PersonaDraft.everywhere.filter(created_at__lt=now - limits.PERSONA_DRAFTS_KEPT)
    draft_ids = list(old.order_by("created_at").values_list("pk", flat=True)[:_DELETED_AT_ONCE])
    if not draft_ids:
        return 0
    return PersonaDraft.everywhere.filter(pk__in=draft_ids).delete()[0]


def _refuse_unusable(url: str, pasted: list[str]) -> None:
    """Raise `Invalid` if there is neither an address nor a post, or one of them can't be used."""
    if not url and not pasted:
        raise Invalid.one(field="url", code="required", message=_("Give a web address, or paste some posts."))
    if len(pasted) > limits.DRAFT_POSTS:
        message = _("These are more than %(most)d posts; take the best of them.") % {
            "most": limits.DRAFT_POSTS
        }
        raise Invalid.one(field="posts", code="too_many", message=message)
    if any(len(post) > limits.REFERENCE_POST_CHARACTERS for post in pasted):
        message = _("One of these has more than %(most)d characters; part posts by a line of three dashes.")
        full_message = message % {"most": limits.REFERENCE_POST_CHARACTERS}
        raise Invalid.one(field="posts", code="too_long", message=full_message)
    if url:
        try:
            plugins.get("sources", "scraper", Source).clean_config({"url": url})
        except ConfigInvalid as invalid:
            raise Invalid.one(field="url", code="invalid_address", message=str(invalid)) from invalid


def gather(url: str, posts: Sequence[str], *, now: datetime) -> PersonaMaterial:
    """Return the posts with the material of the site, which is one page or one feed and is read once.

    robots.txt and the rules for robots in pages are heeded as by the source `scraper`. It also tells a page from
    a feed, so a feed that robots.txt disallows is never fetched as one. Raises a `PluginError` with a message for
    people if the site can't be read.
    """
    if not url:
        return PersonaMaterial(posts=tuple(posts))
    try:
        return _material_of_page(_fetch("scraper", {"url": url, "max_pages": 1}, now), posts)
    except Refused as refused:
        if refused.code != "is_feed":
            raise
    return _material_of_feed(_fetch("rss", {"url": url}, now), posts)


def _fetch(name: str, config: dict[str, object], now: datetime) -> Fetch:
    kind = plugins.get("sources", name, Source)
    environment = environment_of_source(kind)
    fetched = kind.fetch(
        kind.clean_config(config), {}, http=shared.client(), now=now, environment=environment
    )
    if fetched.gone:
        message = "The site says that this address is permanently gone (410). Give another address."
        raise Refused(message, code="gone")
    return fetched


def _material_of_page(page: Fetch, posts: Sequence[str]) -> PersonaMaterial:
    """Return the material of a fetched page with the posts. Raises `Refused` if its rules forbid to use it."""
    entry = next(iter(page.entries), None)
    if entry is None:
        return PersonaMaterial(site=_one_line(page.title), posts=tuple(posts))
    if entry.left_out is not None and entry.left_out.code not in _HARMLESS:
        message = f"{entry.left_out.message} Give another address, or paste some posts instead."
        raise Refused(message, code=entry.left_out.code)
    text = _entry_text(entry)
    return PersonaMaterial(
        site=_one_line(str(entry.metadata.get("site") or entry.title or page.title)),
        description=_one_line(str(entry.metadata.get("description") or "")),
        language=entry.language,
        posts=tuple(posts),
        texts=(text,) if text else (),
    )


def _material_of_feed(feed: Fetch, posts: Sequence[str]) -> PersonaMaterial:
    """Return the material of a feed with the posts: its short entries are posts too.

    Long entries are articles, which don't show the voice of posts.
    """
    entries = [entry for entry in feed.entries if not entry.withdrawn][:POSTS_READ]
    texts = [text for entry in entries if (text := _entry_text(entry) or _one_line(entry.title))]
    return PersonaMaterial(
        site=_one_line(feed.title),
        language=next((entry.language for entry in entries if entry.language), ""),
        posts=(*posts, *(text for text in texts if len(text) <= MAX_POST_CHARACTERS)),
        texts=tuple(text for text in texts if len(text) > MAX_POST_CHARACTERS),
    )


def _entry_text(entry: Entry) -> str:
    return seen_text(entry.body, entry.body_format).strip()


def _one_line(text: str) -> str:
    return " ".join(plain_text(text, "text").split())


def make_draft(draft: PersonaDraft) -> None:
    """Make one claimed draft, unless it was moved; its material is stored before the model is called."""
    crash_point("drafts.claimed")
    try:
        _run_draft(draft)
    except (LostLease, states.Overtaken) as error:
        log.info("overtaken", draft=draft.pk.hex, reason=str(error))


def give_up(draft: PersonaDraft) -> None:
    """End a draft whose task kept crashing as failed, unless it was moved meanwhile."""
    message = _(
        "Drafting failed several times; the operator's log has the reason. Write the sections yourself."
    )
    try:
        _fail(draft, "gave_up", message)
    except states.Overtaken as error:
        log.info("overtaken", draft=draft.pk.hex, reason=str(error))


def _run_draft(draft: PersonaDraft) -> None:
    """Draft the persona with a model, or without one, and store the draft or the failure.

    A draft that waits for its host, or for a short outage of the model, sleeps. Raises `LostLease` or
    `states.Overtaken` if another change came first.
    """
    if not draft.workspace.is_at_work:
        _fail(draft, "not_at_work", _("This workspace isn't at work now; ask for the draft when it is."))
        return
    if draft.status == PersonaDraftStatus.QUEUED:
        states.move(draft, "running", under_lease=True)
    material = _load_material(draft)
    if material is None:
        return
    crash_point("drafts.read")
    if material.is_empty:
        message = _("There are no words to draft from. Give another address, or paste some posts.")
        _fail(draft, "no_words", message)
        return
    try:
        with open_client(draft) as client:
            drafted = draft_without_ai(material) if client is None else draft_with_model(material, client)
    except TryLater as error:
        _retry_or_fail(draft, error)
        return
    except (Refused, NeedsReconnect) as error:
        _fail(draft, error.code, error.message)
        return
    crash_point("drafts.drafted")
    states.move(
        draft,
        "done",
        under_lease=True,
        sections=asdict(drafted),
        is_offline=client is None,
        material=None,
        error=None,
        wake_at=None,
        attempts=0,
        finished_at=utc_now(),
    )


def _load_material(draft: PersonaDraft) -> PersonaMaterial | None:
    """Return the stored material, else read and store it; `None` if the draft waits for its host, or has failed.

    Raises `LostLease` if the lease ended meanwhile.
    """
    if draft.material is not None:
        stored: dict[str, Any] = draft.material
        return PersonaMaterial(**{**stored, "posts": tuple(stored["posts"]), "texts": tuple(stored["texts"])})
    now, host = utc_now(), host_in(draft.url)
    free_at = host_lock.take_host(host, draft.pk, now)
    if free_at is not None:
        draft.sleep_until(free_at, attempts=0)
        return None
    try:
        material = gather(draft.url, draft.posts, now=now)
    except PluginError as error:
        message = _("%(reason)s Try it again later, or paste some posts instead.")
        _fail(draft, error.code, message % {"reason": error.message})
        return None
    finally:
        host_lock.release_host(host, draft.pk, utc_now())
    held_until = work_queue.database_now() + timedelta(seconds=settings.LEASE_SECONDS)
    if not draft.sleep_until(held_until, material=asdict(material)):
        raise LostLease
    return material


def _retry_or_fail(draft: PersonaDraft, error: TryLater) -> None:
    """Let the draft sleep through a short outage, or fail it.

    Caps, stops and longer waits fail it at once, because a person waits in front of the page; `MODEL_TRIES` do too.
    """
    wait = error.after or limits.MODEL_RETRIES[min(draft.tries, len(limits.MODEL_RETRIES) - 1)]
    is_long = error.code in WAITING_CODES or wait > limits.PERSONA_DRAFT_PATIENCE
    if is_long or draft.tries + 1 >= MODEL_TRIES:
        message = _("%(reason)s Nothing was drafted: ask for it again then, or write the sections yourself.")
        _fail(draft, error.code, message % {"reason": error.message})
        return
    stored_error = {"code": error.code, "message": error.message}
    draft.sleep_until(utc_now() + wait, tries=draft.tries + 1, attempts=0, error=stored_error)


def _fail(draft: PersonaDraft, code: str, message: str) -> None:
    error = {"code": code, "message": message}
    states.move(
        draft,
        "failed",
        under_lease=True,
        error=error,
        material=None,
        wake_at=None,
        attempts=0,
        finished_at=utc_now(),
    )
