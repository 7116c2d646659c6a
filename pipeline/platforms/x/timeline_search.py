"""Finds a publication among the account's newest posts by its text, as X returns it."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime, timedelta
from html import unescape
from typing import TYPE_CHECKING, Any, Final

from pipeline.platforms.base import Absent, Account, CannotTell
from pipeline.platforms.http_calls import ask, json_object
from pipeline.platforms.oauth_tokens import bearer_header
from pipeline.platforms.x import errors
from pipeline.text.links import find_links

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.core.http_client import Client
    from pipeline.platforms.payload_types import Adapted

POSTS_LISTED: Final = 10
CLOCK_TOLERANCE: Final = timedelta(minutes=2)
"""How far X's clock and ours may be apart."""
SETTLE_TIME: Final = timedelta(seconds=25)
"""After a call this long ago the list is taken to hold its post."""
SETTLE_TIME_AFTER_PROCESSING: Final = timedelta(minutes=15)
"""`SETTLE_TIME` for a post that waited for its video between `tried` and the call."""
_MEDIA_LINK: Final = re.compile(r"/(photo|video)/[0-9]+$")
_WHITE_SPACE: Final = re.compile(r"\s+")


def search_timeline(
    account: Account, post: Adapted, state: Mapping[str, Any], *, http: Client, now: datetime
) -> dict[str, Any] | Absent | CannotTell:
    """Return the post as X lists it, or that it is absent or can't be told.

    Raises as `ask` and `raise_for_response` do.
    """
    user, since = account.profile.get("external_id"), _parse_datetime(state.get("since"))
    if not isinstance(user, str) or not user or since is None:
        return CannotTell("It isn't known which account's posts to search.")
    fields = "created_at,entities,note_post"
    url = f"{account.base_url}/users/{user}/tweets?max_results={POSTS_LISTED}&post.fields={fields}"
    response = ask(http, "GET", url, service="X", headers=bearer_header(account))
    if response.status != 200:
        errors.raise_for_response(response, now=now, is_commit=False)
    answer = json_object(response.body) or {}
    meta = answer.get("meta")
    posts = answer.get("data", [] if isinstance(meta, dict) and meta.get("result_count") == 0 else None)
    if not isinstance(meta, dict) or not isinstance(posts, list) or answer.get("errors"):
        return CannotTell("X's list of posts couldn't be read.")
    moments = [_parse_datetime(each.get("created_at")) if isinstance(each, dict) else None for each in posts]
    if None in moments:
        return CannotTell("X's list of posts couldn't be read.")
    earliest = since - CLOCK_TOLERANCE
    newer = [
        each for each, moment in zip(posts, moments, strict=True) if moment is not None and moment >= earliest
    ]
    wanted_text = normalize_text(post.payload.body)
    if wanted_text:
        same = [each for each in newer if post_text(each) == wanted_text]
        if same:
            # The earliest one: a later post with the same text isn't this publication's.
            return dict(same[-1])
    elif newer:
        return CannotTell("A post without words can't be told from the account's other ones.")
    is_complete = len(newer) < len(posts) or "next_token" not in meta
    if not is_complete:
        return CannotTell(f"The account's {POSTS_LISTED} newest posts don't go back far enough.")
    tried = _parse_datetime(state.get("tried"))
    has_waited = any(file.get("is_processed_later") for file in state.get("files", []))
    if tried is not None and now - tried < (SETTLE_TIME_AFTER_PROCESSING if has_waited else SETTLE_TIME):
        return CannotTell("X's list of posts may be some seconds behind.")
    return Absent()


def post_text(post: Mapping[str, Any]) -> str:
    """Return a listed post's own text: short links spelled out, those to its pictures removed."""
    note = post.get("note_post", post.get("note_tweet"))
    full_post = note if isinstance(note, dict) and isinstance(note.get("text"), str) else post
    text = unescape(str(full_post.get("text", "")))
    entities = full_post.get("entities")
    urls = entities.get("urls") if isinstance(entities, dict) else None
    for link in urls if isinstance(urls, list) else []:
        short, target = (link.get("url"), link.get("expanded_url")) if isinstance(link, dict) else ("", "")
        if isinstance(short, str) and short and isinstance(target, str):
            is_media = "media_key" in link or _MEDIA_LINK.search(target) is not None
            text = text.replace(short, "" if is_media else target)
    return normalize_text(text)


def normalize_text(text: str) -> str:
    """Return the text so that spellings of the same text compare equal.

    That is NFC, single spaces, addresses without their scheme.
    """
    text = unicodedata.normalize("NFC", text)
    pieces, position = [], 0
    for link in find_links(text):
        bare = link.url.partition("://")[2] if link.has_scheme else link.url
        host, slash, rest = bare.partition("/")
        pieces += [text[position : link.start], host.lower(), f"{slash}{rest}".rstrip("/")]
        position = link.end
    return _WHITE_SPACE.sub(" ", "".join([*pieces, text[position:]])).strip()


def _parse_datetime(value: object) -> datetime | None:
    """Return an aware moment of ISO 8601; `None` for anything else."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None
