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
"""The number of newest posts that are read."""
CLOCK_TOLERANCE: Final = timedelta(minutes=2)
"""The most by which X's clock and ours may differ."""
SETTLE_TIME: Final = timedelta(seconds=25)
"""The time since `tried` after which the list is taken to have the post."""
SETTLE_TIME_AFTER_PROCESSING: Final = timedelta(minutes=15)
"""`SETTLE_TIME` for a post that waited for its video between `tried` and the call."""
_MEDIA_LINK: Final = re.compile(r"/(photo|video)/[0-9]+$")
_WHITE_SPACE: Final = re.compile(r"\s+")


def search_timeline(
    account: Account, post: Adapted, state: Mapping[str, Any], *, http: Client, now: datetime
) -> dict[str, Any] | Absent | CannotTell:
    """Return the post as X lists it, `Absent` if it provably isn't there, or `CannotTell`.

    Raises as `raise_for_response` if X fails, and `TryLater` if X can't be reached.
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
    moments = [
        _parse_datetime(entry.get("created_at")) if isinstance(entry, dict) else None for entry in posts
    ]
    if None in moments:
        return CannotTell("X's list of posts couldn't be read.")
    earliest = since - CLOCK_TOLERANCE
    newer = [
        entry
        for entry, moment in zip(posts, moments, strict=True)
        if moment is not None and moment >= earliest
    ]
    wanted_text = normalize_text(post.payload.body)
    if wanted_text:
        matching = [entry for entry in newer if post_text(entry) == wanted_text]
        if matching:
            # The list begins with the newest post. A later post with the same text isn't this publication's.
            return dict(matching[-1])
    elif newer:
        return CannotTell("A post without words can't be told from the account's other ones.")
    is_complete = len(newer) < len(posts) or "next_token" not in meta
    if not is_complete:
        return CannotTell(f"The account's {POSTS_LISTED} newest posts don't go back far enough.")
    tried = _parse_datetime(state.get("tried"))
    has_waited = any(file.get("is_processed_later") for file in state.get("files", []))
    settle_time = SETTLE_TIME_AFTER_PROCESSING if has_waited else SETTLE_TIME
    if tried is not None and now - tried < settle_time:
        return CannotTell("X's list of posts may be some seconds behind.")
    return Absent()


def post_text(post: Mapping[str, Any]) -> str:
    """Return a listed post's text, normalized, with short links replaced and those to its files removed."""
    note = post.get("note_post", post.get("note_tweet"))
    full_post = note if isinstance(note, dict) and isinstance(note.get("text"), str) else post
    text = unescape(str(full_post.get("text", "")))
    entities = full_post.get("entities")
    urls = entities.get("urls") if isinstance(entities, dict) else None
    for link in urls if isinstance(urls, list) else []:
        short_url, target = (
            (link.get("url"), link.get("expanded_url")) if isinstance(link, dict) else ("", "")
        )
        if isinstance(short_url, str) and short_url and isinstance(target, str):
            is_media = "media_key" in link or _MEDIA_LINK.search(target) is not None
            text = text.replace(short_url, "" if is_media else target)
    return normalize_text(text)


def normalize_text(text: str) -> str:
    """Return the text in a form in which spellings of the same text are equal.

    It is in NFC, with single spaces, and addresses without their scheme and last slash.
    """
    text = unicodedata.normalize("NFC", text)
    pieces, copied_to = [], 0
    for link in find_links(text):
        bare = link.url.partition("://")[2] if link.has_scheme else link.url
        host, slash, rest = bare.partition("/")
        pieces += [text[copied_to : link.start], host.lower(), f"{slash}{rest}".rstrip("/")]
        copied_to = link.end
    return _WHITE_SPACE.sub(" ", "".join([*pieces, text[copied_to:]])).strip()


def _parse_datetime(value: object) -> datetime | None:
    """Return the aware moment of an ISO 8601 text, or `None` for any other value."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None
