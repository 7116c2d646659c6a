"""Finds the known name that is meant by an unknown one: a typing error, or another service's word."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Final

from config.core import limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MIN_SIMILARITY: Final = 0.7
"""Below this similarity a guess misleads more often than it helps: `url` isn't near to `batch_hours`."""
# Names that other services, feeds and people use, separated by spaces, with our names for them: the first that is
# known counts, so the likeliest stands first.
_SYNONYMS: Final = {
    "content text html markdown message article description full_text": ("body",),
    "headline heading": ("title", "name"),
    "subject": ("title", "topics", "name"),
    "name": ("title",),
    "title label": ("name",),
    "url link href uri address feed feed_url rss rss_url website site source_url": (
        "url",
        "channel",
        "links",
        "base_url",
    ),
    "channel_id channel_url channel_name youtube_channel": ("channel", "url"),
    "playlist_id playlist_url": ("playlist", "url"),
    "user account profile user_name username creator handle": ("username", "handle", "channel"),
    "tag tags hashtags": ("hashtag",),
    "from since start start_date date_from from_date start_time begin": ("from", "created_after"),
    "to until till end end_date date_to to_date end_time": ("to", "created_before"),
    "id guid uuid ref reference": ("external_id",),
    "lang locale": ("language",),
    "images image image_url videos video video_url attachments files photos pictures": ("media", "upload"),
    "published pub_date created_at": ("published_at", "created_after"),
    "date": ("published_at", "created_after", "publish_at"),
    "engine formats format outputs output engine_output engine_outputs": ("engines", "engine_output"),
    "scheduled_at scheduled_for schedule_at time at when send_at": ("publish_at", "local_time"),
    "time_zone timezone tz": ("timezone", "tz"),
    "published_from published_since published_after publish_from": ("publish_after", "published_at"),
    "published_to published_until published_before publish_to": ("publish_before",),
    "created_from created_since": ("created_after",),
    "created_to created_until": ("created_before",),
    "updated_from updated_since modified_since": ("updated_after",),
    "updated_to updated_until": ("updated_before",),
    "channels accounts platforms outlet": ("outlets",),
    "page_size per_page count size": ("limit",),
    "page offset after next starting_after": ("cursor", "after"),
    "sort order_by direction sort_by": ("order",),
    "interval poll_interval": ("poll_interval_minutes",),
    "frequency schedule every every_hours slots": ("cadence", "poll_interval_minutes", "publish_at"),
    "selector css css_selector": ("item_selector",),
    "granularity period resolution date_bucket bucket_size step": ("interval",),
    "bucket buckets": ("content_type",),
    "dimension dimensions breakdown group by split_by": ("group_by",),
    "topic_pool topic prompt prompts subjects themes keywords": ("topics",),
    "state": ("status",),
    "kind source_type": ("type",),
    "settings options configuration": ("config",),
    "meta extra data": ("metadata",),
    "events event_types types": ("type",),
}
_OUR_NAMES: Final = {word: meant for words, meant in _SYNONYMS.items() for word in words.split()}


def find_nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is meant, or `None` if none is near enough.

    The name may be spelled in another case, be another service's word, or contain a typing error.
    """
    names = sorted(known)
    word = name[: limits.NAME_CHARACTERS]
    by_folded_name = {_fold_name(our_name): our_name for our_name in names}
    same_name = by_folded_name.get(_fold_name(word))
    if same_name is not None:
        return same_name
    # `feedUrl` and `feed-url` become `feed_url`.
    snake_case = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word).lower().replace("-", "_")
    if snake_case in _OUR_NAMES:
        # A word that other services use isn't a typing error for a name that only looks like it.
        return next((our_name for our_name in _OUR_NAMES[snake_case] if our_name in names), None)
    close_matches = difflib.get_close_matches(
        _fold_name(word), list(by_folded_name), n=1, cutoff=_MIN_SIMILARITY
    )
    return by_folded_name[close_matches[0]] if close_matches else None


def hint(name: str, known: Sequence[str]) -> str:
    """Return the sentence that follows an unknown name: the name that is meant, or else all known names."""
    meant = find_nearest(name, known)
    return f"Did you mean {meant}?" if meant else f"Known are: {', '.join(known) or 'none'}."


def _fold_name(name: str) -> str:
    """Return the name in a form in which `shortPost`, `short_post` and `SHORT POST` are equal."""
    return re.sub(r"[\s_-]+", "", name).casefold()
