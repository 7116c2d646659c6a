"""Finds a publication among the account's newest posts by its words, as X gives them back."""

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

LISTED: Final = 10
SKEW: Final = timedelta(minutes=2)
"""How far X's clock and ours may be apart."""
SETTLED: Final = timedelta(seconds=25)
"""After a call this long the list is taken to hold its post."""
SETTLED_AFTER_PROCESSING: Final = timedelta(minutes=15)
"""The same, of a post that waited between `tried` and the call until X had processed its video."""
_MEDIA_LINK: Final = re.compile(r"/(photo|video)/[0-9]+$")
_SPACE: Final = re.compile(r"\s+")


def search_timeline(
    account: Account, post: Adapted, state: Mapping[str, Any], *, http: Client, now: datetime
) -> dict[str, Any] | Absent | CannotTell:
    """The post as X lists it. Raises as `ask` and `fail` do."""
    user, since = account.profile.get("external_id"), _moment(state.get("since"))
    if not isinstance(user, str) or not user or since is None:
        return CannotTell("It isn't known which posts of which account to look at.")
    fields = "created_at,entities,note_post"
    url = f"{account.base_url}/users/{user}/tweets?max_results={LISTED}&post.fields={fields}"
    response = ask(http, "GET", url, what="X", headers=bearer_header(account))
    if response.status != 200:
        errors.fail(response, now=now, is_commit=False)
    answer = json_object(response.body) or {}
    meta = answer.get("meta")
    listed = answer.get("data", [] if isinstance(meta, dict) and meta.get("result_count") == 0 else None)
    if not isinstance(meta, dict) or not isinstance(listed, list) or answer.get("errors"):
        return CannotTell("X's list of posts couldn't be read.")
    moments = [_moment(one.get("created_at")) if isinstance(one, dict) else None for one in listed]
    if None in moments:
        return CannotTell("X's list of posts couldn't be read.")
    earliest = since - SKEW
    newer = [
        one for one, moment in zip(listed, moments, strict=True) if moment is not None and moment >= earliest
    ]
    wanted = normalize_words(post.payload.body)
    if wanted:
        same = [one for one in newer if words_of(one) == wanted]
        if same:
            # The earliest of them, where another was made since.
            return dict(same[-1])
    elif newer:
        return CannotTell("A post without words can't be told from the account's other ones.")
    is_whole = len(newer) < len(listed) or "next_token" not in meta
    if not is_whole:
        return CannotTell(f"The account's {LISTED} newest posts don't go back far enough.")
    tried = _moment(state.get("tried"))
    has_waited = any(one.get("is_processed_later") for one in state.get("files", []))
    if tried is not None and now - tried < (SETTLED_AFTER_PROCESSING if has_waited else SETTLED):
        return CannotTell("X's list of posts may be some seconds behind.")
    return Absent()


def words_of(one: Mapping[str, Any]) -> str:
    """A listed post's own words: its short links spelled out, those to its pictures taken away."""
    note = one.get("note_post", one.get("note_tweet"))
    whole = note if isinstance(note, dict) and isinstance(note.get("text"), str) else one
    text = unescape(str(whole.get("text", "")))
    entities = whole.get("entities")
    urls = entities.get("urls") if isinstance(entities, dict) else None
    for link in urls if isinstance(urls, list) else []:
        short, target = (link.get("url"), link.get("expanded_url")) if isinstance(link, dict) else ("", "")
        if isinstance(short, str) and short and isinstance(target, str):
            is_media = "media_key" in link or _MEDIA_LINK.search(target) is not None
            text = text.replace(short, "" if is_media else target)
    return normalize_words(text)


def normalize_words(text: str) -> str:
    """Words so that two spellings of the same compare equal: NFC, one space, addresses without their scheme."""
    text = unicodedata.normalize("NFC", text)
    out, position = [], 0
    for link in find_links(text):
        bare = link.url.partition("://")[2] if link.has_scheme else link.url
        host, slash, rest = bare.partition("/")
        out += [text[position : link.start], host.lower(), f"{slash}{rest}".rstrip("/")]
        position = link.end
    return _SPACE.sub(" ", "".join([*out, text[position:]])).strip()


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None
