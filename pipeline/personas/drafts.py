"""Drafts of personas: asked for, made from a site or past posts, and forgotten when nobody has saved them."""

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
from pipeline.writers.persona_drafts import LONGEST_POST, PersonaMaterial, draft_without_ai, posts_in

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pipeline.models import Persona
    from pipeline.sources.base import Entry, Fetch

_FORGOTTEN_AT_ONCE = 500
POSTS_READ: Final = 40
"""Newest entries of a feed that are looked at."""
# Reasons of a page to be left out that say nothing against what else was given.
_HARMLESS: Final = frozenset({"no_text", "needs_javascript", "only_links", "only_title"})
log = structlog.get_logger(__name__)

MODEL_TRIES: Final = 3
"""A person waits: an outage that lasts longer is told, and they decide."""


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
        dispatcher.wake()
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
    dispatcher.wake()


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


def gather(url: str, posts: Sequence[str], *, now: datetime) -> PersonaMaterial:
    """Ask the site once, within the time of one fetch. Raises a `PluginError` in words for people.

    One page, or one feed: robots.txt and what pages tell robots are heeded as by the source `scraper`, which
    also tells the two apart, so a feed that robots.txt closes is never asked for as one.
    """
    if not url:
        return PersonaMaterial(posts=tuple(posts))
    try:
        return _of_page(_fetch("scraper", {"url": url, "max_pages": 1}, now), posts)
    except Refused as refused:
        if refused.code != "is_feed":
            raise
    return _of_feed(_fetch("rss", {"url": url}, now), posts)


def _fetch(name: str, given: dict[str, object], now: datetime) -> Fetch:
    kind = plugins.get("sources", name, Source)
    asked = environment_of_source(kind)
    found = kind.fetch(kind.clean_config(given), {}, http=shared.client(), now=now, environment=asked)
    if found.gone:
        message = "The site says that this address is gone for good (410). Give another address."
        raise Refused(message, code="gone")
    return found


def _of_page(found: Fetch, posts: Sequence[str]) -> PersonaMaterial:
    entry = next(iter(found.entries), None)
    if entry is None:
        return PersonaMaterial(site=_line(found.title), posts=tuple(posts))
    if entry.left_out is not None and entry.left_out.code not in _HARMLESS:
        message = f"{entry.left_out.message} Give another address, or paste some posts instead."
        raise Refused(message, code=entry.left_out.code)
    text = _text(entry)
    return PersonaMaterial(
        site=_line(str(entry.metadata.get("site") or entry.title or found.title)),
        description=_line(str(entry.metadata.get("description") or "")),
        language=entry.language,
        posts=tuple(posts),
        texts=(text,) if text else (),
    )


def _of_feed(found: Fetch, posts: Sequence[str]) -> PersonaMaterial:
    """Short entries are posts; long ones are articles, of which a post's voice isn't told."""
    entries = [entry for entry in found.entries if not entry.withdrawn][:POSTS_READ]
    said = [words for entry in entries if (words := _text(entry) or _line(entry.title))]
    return PersonaMaterial(
        site=_line(found.title),
        language=next((entry.language for entry in entries if entry.language), ""),
        posts=(*posts, *(words for words in said if len(words) <= LONGEST_POST)),
        texts=tuple(words for words in said if len(words) > LONGEST_POST),
    )


def _text(entry: Entry) -> str:
    return seen_text(entry.body, entry.body_format).strip()


def _line(words: str) -> str:
    return " ".join(plain_text(words, "text").split())


def make_draft(draft: PersonaDraft) -> None:
    """Make one claimed draft. What was read and what was answered is stored before the next step."""
    crash_point("drafts.claimed")
    try:
        _work(draft)
    except (LostLease, states.Overtaken) as error:
        log.info("overtaken", draft=draft.pk.hex, reason=str(error))


def give_up(draft: PersonaDraft) -> None:
    message = _(
        "Drafting broke several times; the operator's log has the reason. Write the sections yourself."
    )
    try:
        _fail(draft, "gave_up", message)
    except states.Overtaken as error:
        log.info("overtaken", draft=draft.pk.hex, reason=str(error))


def _work(draft: PersonaDraft) -> None:
    if not draft.workspace.is_at_work:
        _fail(draft, "not_at_work", _("This workspace isn't at work now; ask for the draft when it is."))
        return
    if draft.status == PersonaDraftStatus.QUEUED:
        states.move(draft, "running", under_lease=True)
    material = _material(draft)
    if material is None:
        return
    crash_point("drafts.read")
    if material.is_empty:
        message = _("There are no words to draft from. Give another address, or paste some posts.")
        _fail(draft, "no_words", message)
        return
    try:
        with open_client(draft) as client:
            made = draft_without_ai(material) if client is None else draft_with_model(material, client)
    except TryLater as error:
        _wait(draft, error)
        return
    except (Refused, NeedsReconnect) as error:
        _fail(draft, error.code, error.message)
        return
    crash_point("drafts.drafted")
    states.move(
        draft,
        "done",
        under_lease=True,
        sections=asdict(made),
        is_offline=client is None,
        material=None,
        error=None,
        wake_at=None,
        attempts=0,
        finished_at=utc_now(),
    )


def _material(draft: PersonaDraft) -> PersonaMaterial | None:
    """What is there to draft from; None where the draft waits for its host, or has failed."""
    if draft.material is not None:
        kept: dict[str, Any] = draft.material
        return PersonaMaterial(**{**kept, "posts": tuple(kept["posts"]), "texts": tuple(kept["texts"])})
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


def _wait(draft: PersonaDraft, error: TryLater) -> None:
    """A short outage is waited out; caps and stops last, and somebody sits before the page: they are told at
    once.
    """
    wait = error.after or limits.MODEL_RETRIES[min(draft.tries, len(limits.MODEL_RETRIES) - 1)]
    is_long = error.code in WAITING_CODES or wait > limits.PERSONA_DRAFT_PATIENCE
    if is_long or draft.tries + 1 >= MODEL_TRIES:
        message = _("%(reason)s Nothing was drafted: ask for it again then, or write the sections yourself.")
        _fail(draft, error.code, message % {"reason": error.message})
        return
    kept = {"code": error.code, "message": error.message}
    draft.sleep_until(utc_now() + wait, tries=draft.tries + 1, attempts=0, error=kept)


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
