"""Publishes videos on YouTube through its Data API v3, by developers.google.com/youtube as of 20 November 2026."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pipeline.platforms import http_calls
from pipeline.platforms.base import (
    METRICS,
    Absent,
    Account,
    AccountInfo,
    Api,
    CannotTell,
    Found,
    OAuth,
    Prepared,
    Sample,
    Sent,
    Setting,
)
from pipeline.platforms.fitting import FITTING_SETTINGS, fit_text
from pipeline.platforms.http_calls import ask, ask_once, json_object
from pipeline.platforms.oauth_tokens import TokenPlatform, bearer_header, expiry_of, missing_notes, scopes_of
from pipeline.platforms.payload_types import AdaptationStep, Adapted, Payload, PayloadAsset
from pipeline.platforms.rules import MEBIBYTE, BucketRule, MediaRule, too_long, utf8_bytes
from pipeline.platforms.upload_bodies import part_of
from pipeline.platforms.youtube import upload
from pipeline.platforms.youtube.errors import raise_for_response
from pipeline.plugins import Evidence, NeedsReconnect, PluginError, Problem, TryLater
from pipeline.text.plain_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from config.core.http_client import Client
    from pipeline.engines.base import Bucket

MAX_TITLE_CHARACTERS: Final = 100
MAX_DESCRIPTION_BYTES: Final = 5_000
MAX_TAGS_CHARACTERS: Final = 500
MAX_THUMBNAIL_BYTES: Final = 2 * MEBIBYTE
MAX_SECONDS: Final = 12 * 3600
MAX_UNVERIFIED_SECONDS: Final = 15 * 60
"""The longest video, in seconds, on a channel that hasn't been verified by phone."""
IDS_PER_CALL: Final = 50
SCOPE: Final = "https://www.googleapis.com/auth/youtube"
COUNT_FIELDS: Final = {"views": "viewCount", "likes": "likeCount", "comments": "commentCount"}
_BRACKETS: Final = str.maketrans({"<": "‹", ">": "›"})

VIDEO_RULE: Final = MediaRule(
    ("video/mp4", "video/quicktime", "video/webm", "video/mpeg", "video/x-matroska", "video/x-msvideo"),
    most=1,
    max_bytes=256 * 1024 * MEBIBYTE,
    max_seconds=MAX_SECONDS,
)


class YouTube(TokenPlatform):
    kind = "youtube"
    label = "YouTube"
    summary = "Videos with a title and a description; those that are short and upright become Shorts."
    evidence = Evidence("documents", "November 2026", "tests/platforms/test_youtube.py")
    buckets = ("video",)
    can_reconcile = True
    can_remove = True
    has_finish = True
    idempotency = "resumable"
    metrics_given = tuple(metric for metric in METRICS if metric in COUNT_FIELDS)
    settings: ClassVar[tuple[Setting, ...]] = (
        *FITTING_SETTINGS,
        Setting(
            "privacy",
            "Who sees the videos",
            "YouTube keeps them private until it has audited this service's Google project.",
            kind="choice",
            choices=(
                ("public", "Everyone"),
                ("unlisted", "Anyone with the link"),
                ("private", "Only the channel's owner"),
            ),
            default="public",
            is_required=False,
        ),
        Setting(
            "made_for_kids",
            "The videos are made for children",
            "Required by law (COPPA). YouTube then leaves out comments and personalised ads.",
            kind="flag",
            default=False,
            is_required=False,
        ),
        Setting(
            "category",
            "Number of the category",
            "Such as 22 for People & Blogs, 25 for News & Politics, 28 for Science & Technology.",
            kind="number",
            default=22,
            is_required=False,
        ),
        Setting("notify", "Notify subscribers of each video", kind="flag", default=True, is_required=False),
    )
    oauth: ClassVar[OAuth | None] = OAuth(
        authorize_url="https://accounts.google.com/o/oauth2/v2/auth",
        token_url="https://oauth2.googleapis.com/token",
        scopes=(SCOPE,),
        extra={"access_type": "offline", "prompt": "consent"},
        setup=(
            "Make a project at console.cloud.google.com, enable the YouTube Data API v3 and make an OAuth client of "
            "the type “Web application”. Publish the app: in testing its connections end after seven days."
        ),
    )
    api: ClassVar[Api | None] = Api("https://www.googleapis.com", "3", reviewed_on=date(2026, 11, 20))
    rules: ClassVar[Mapping[Bucket, BucketRule]] = {
        "video": BucketRule(
            MAX_DESCRIPTION_BYTES,
            count=utf8_bytes,
            unit="bytes",
            needs_text=False,
            title_max=MAX_TITLE_CHARACTERS,
            needs_title=True,
            video=VIDEO_RULE,
            needs="video",
        )
    }

    def rules_for(self, account: Account, bucket: Bucket) -> BucketRule | None:
        rule = self.rules.get(bucket)
        limits = account.profile.get("limits")
        seconds = limits.get("max_seconds") if isinstance(limits, dict) else None
        if rule is None or not isinstance(seconds, int):
            return rule
        return replace(rule, video=replace(VIDEO_RULE, max_seconds=seconds))

    def adapt(self, account: Account, payload: Payload) -> Adapted:
        rule = self.rules_for(account, payload.bucket)
        if rule is None:
            return Adapted(payload, (payload.body,))
        body, steps = payload.body, []
        if payload.body_format != "text":
            body = plain_text(body, payload.body_format)
            steps.append(AdaptationStep("plain_text", f"The {payload.body_format} became plain words."))
        # They are replaced before the text is fitted, because ‹ and › have more bytes than < and >.
        clean = replace(
            payload,
            title=payload.title.translate(_BRACKETS),
            body=body.translate(_BRACKETS),
            body_format="text",
        )
        if (clean.title, clean.body) != (payload.title, body):
            steps.append(
                AdaptationStep("brackets", "YouTube doesn't allow < and >. They were replaced by ‹ and ›.")
            )
        post = fit_text(clean, rule, account.config)
        disclosure = {"containsSyntheticMedia": True} if payload.is_ai_generated else {}
        return replace(post, steps=(*steps, *post.steps), disclosure=disclosure)

    def validate(self, account: Account, post: Adapted) -> tuple[Problem, ...]:
        problems = list(super().validate(account, post))
        length = length_of_tags(tags_of(post.payload))
        if length > MAX_TAGS_CHARACTERS:
            problems.append(too_long("content.tags", length, MAX_TAGS_CHARACTERS, "characters"))
        return tuple(problems)

    def check_account(self, account: Account, *, http: Client, now: datetime) -> AccountInfo:
        url = f"{account.base_url}/youtube/v3/channels?part=snippet,status&mine=true"
        response = ask(http, "GET", url, service="YouTube", headers=bearer_header(account))
        answer = json_object(response.body)
        if response.status != 200 or answer is None:
            raise_for_response(response, now=now, is_commit=False)
        items = answer.get("items")
        channel = items[0] if isinstance(items, list) and items else None
        if not isinstance(channel, dict) or not isinstance(channel.get("id"), str):
            message = "The Google account has no channel at YouTube."
            action = "Make a channel at youtube.com, then reconnect the outlet."
            raise NeedsReconnect(message, code="no_channel", action=action)
        snippet, status = channel.get("snippet") or {}, channel.get("status") or {}
        is_short = status.get("longUploadsStatus") in {"disallowed", "eligible"}
        notes = missing_notes(account, {SCOPE: "The right to upload wasn't granted; reconnect it."})
        if is_short:
            notes = (*notes, "Videos may last 15 minutes until the channel is verified (youtube.com/verify).")
        return AccountInfo(
            external_id=channel["id"],
            handle=str(snippet.get("customUrl") or "").removeprefix("@"),
            name=str(snippet.get("title") or ""),
            url=f"https://www.youtube.com/channel/{channel['id']}",
            scopes=scopes_of(account),
            expires_at=expiry_of(account),
            limits={"max_seconds": MAX_UNVERIFIED_SECONDS} if is_short else {},
            notes=notes,
        )

    def prepare(
        self,
        account: Account,
        post: Adapted,
        state: Mapping[str, Any],
        *,
        http: Client,
        key: str,
        now: datetime,
    ) -> Prepared:
        del key
        notify = "&notifySubscribers=false" if account.config.get("notify") is False else ""
        body = video_body(account, post)
        return upload.advance_upload(account, video_in(post), body, state, query=notify, http=http, now=now)

    def commit(
        self,
        account: Account,
        post: Adapted,
        state: Mapping[str, Any],
        *,
        http: Client,
        key: str,
        now: datetime,
    ) -> Sent:
        del key
        if "video" in state:
            return Sent(state["video"], f"https://www.youtube.com/watch?v={state['video']}")
        asset, sent = video_in(post), int(state["sent"])
        # If YouTube has all bytes but made no video yet, an empty part asks for it once more.
        content = part_of(asset, sent, asset.bytes - sent) if sent < asset.bytes else b""
        headers = upload.part_headers(account, asset, sent, len(content))
        if not content:
            headers["Content-Range"] = f"bytes */{asset.bytes}"
        response = ask_once(
            http,
            "PUT",
            state["session"],
            service="YouTube",
            body=content,
            headers=headers,
            timeout=http_calls.UPLOAD_SECONDS,
        )
        video = upload.video_of(response)
        if response.status == upload.RESUME_INCOMPLETE:
            message = "YouTube doesn't have the whole video yet. The rest is sent."
            raise TryLater(message, code="upload_unfinished", platform_status=response.status)
        if response.status in upload.GONE_STATUSES:
            # `prepare` has just seen that the session made nothing; a session that is gone now took nothing since.
            message = "YouTube dropped the upload. It starts over."
            raise TryLater(message, code="upload_lost", platform_status=response.status)
        if video is None:
            raise_for_response(response, now=now, is_commit=True)
        return video

    def reconcile(
        self,
        account: Account,
        post: Adapted,
        state: Mapping[str, Any],
        *,
        http: Client,
        key: str,
        now: datetime,
    ) -> Found | Absent | CannotTell:
        """Ask the session, which answers with the video that it made, or with the number of bytes that it has.

        A session that is gone proves nothing: it may have ended because its video was finished days ago, or
        because it never was.
        """
        del key, now
        session = state.get("session")
        if not isinstance(session, str):
            return CannotTell("The upload's address isn't known.")
        try:
            response = upload.ask_progress(account, session, video_in(post), http=http)
        except PluginError as error:
            return CannotTell(error.message)
        video = upload.video_of(response)
        if video is not None:
            return Found(video)
        if response.status == upload.RESUME_INCOMPLETE:
            return Absent()
        return CannotTell(f"YouTube answered {response.status} when it was asked for the upload.")

    def finish(
        self, account: Account, post: Adapted, sent: Sent, *, http: Client, now: datetime
    ) -> Mapping[str, Any] | None:
        """Set the thumbnail, if the item has one that YouTube accepts. Raises as `raise_for_response`."""
        picture = thumbnail_in(post)
        if picture is None:
            return None
        response = ask(
            http,
            "POST",
            f"{account.base_url}/upload/youtube/v3/thumbnails/set?videoId={sent.external_id}&uploadType=media",
            service="YouTube",
            body=picture.read(),
            headers=bearer_header(account, **{"Content-Type": picture.mime_type}),
            timeout=http_calls.UPLOAD_SECONDS,
        )
        if response.status != 200:
            raise_for_response(response, now=now, is_commit=False)
        return {"thumbnail": True}

    def remove(self, account: Account, sent: Sent, *, http: Client, now: datetime) -> None:
        url = f"{account.base_url}/youtube/v3/videos?id={sent.external_id}"
        response = ask(http, "DELETE", url, service="YouTube", headers=bearer_header(account))
        if response.status not in {200, 204, 404}:
            raise_for_response(response, now=now, is_commit=False)

    def metrics(
        self, account: Account, sent: Sequence[tuple[Sent, datetime]], *, http: Client, now: datetime
    ) -> tuple[tuple[Sample, ...], ...]:
        ids = list(dict.fromkeys(post.external_id for post, _ in sent))
        counts: dict[str, Any] = {}
        for start in range(0, len(ids), IDS_PER_CALL):
            joined = ",".join(ids[start : start + IDS_PER_CALL])
            url = f"{account.base_url}/youtube/v3/videos?part=statistics&id={joined}"
            response = ask(http, "GET", url, service="YouTube", headers=bearer_header(account))
            items = (json_object(response.body) or {}).get("items")
            if response.status != 200 or not isinstance(items, list):
                raise_for_response(response, now=now, is_commit=False)
            counts.update(
                {str(item.get("id")): item.get("statistics") for item in items if isinstance(item, dict)}
            )
        return tuple(
            tuple(_to_sample(metric, counts.get(post.external_id)) for metric in METRICS) for post, _ in sent
        )


def _to_sample(metric: str, statistics: object) -> Sample:
    """Return the sample of one metric from a video's statistics."""
    if metric not in COUNT_FIELDS:
        return Sample(metric, None, "unsupported")
    # Google writes counts as text; counts that the owner hides are missing.
    value = statistics.get(COUNT_FIELDS[metric]) if isinstance(statistics, dict) else None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return Sample(metric, int(value))
    return Sample(metric, None, "unavailable")


def video_in(post: Adapted) -> PayloadAsset:
    """Return the post's video."""
    return next(asset for asset in post.payload.assets if asset.mime_type.startswith("video/"))


def thumbnail_in(post: Adapted) -> PayloadAsset | None:
    """Return the thumbnail that YouTube accepts and that is widest for its height, or `None` without one.

    In a list of videos an upright thumbnail would be a strip between two bars.
    """
    accepted = [
        asset
        for asset in post.payload.assets
        if asset.role == "thumbnail"
        and asset.mime_type in {"image/jpeg", "image/png"}
        and asset.bytes <= MAX_THUMBNAIL_BYTES
    ]
    return max(accepted, key=lambda asset: (asset.width or 0) / (asset.height or 1), default=None)


def tags_of(payload: Payload) -> list[str]:
    """Return the video's tags, each once: those of its settings, or else those of its content."""
    values = payload.settings.get("tags", payload.content.get("tags"))
    if not isinstance(values, list | tuple):
        return []
    tags = [str(tag).strip().translate(_BRACKETS) for tag in values]
    return [tag for tag in dict.fromkeys(tags) if tag]


def length_of_tags(tags: Sequence[str]) -> int:
    """Return the length of the tags as YouTube counts: with commas, and quotes around those with spaces."""
    return sum(len(tag) + (2 if " " in tag else 0) for tag in tags) + max(0, len(tags) - 1)


def video_body(account: Account, post: Adapted) -> dict[str, Any]:
    """Return the video's data as the Data API takes it."""
    payload, config = post.payload, account.config
    snippet: dict[str, Any] = {
        "title": payload.title.strip(),
        "description": payload.body,
        "categoryId": str(config.get("category", 22)),
    }
    tags = tags_of(payload)
    if tags:
        snippet["tags"] = tags
    if payload.language:
        snippet["defaultLanguage"] = payload.language
    status = {
        "privacyStatus": config.get("privacy", "public"),
        "selfDeclaredMadeForKids": config.get("made_for_kids") is True,
        **post.disclosure,
    }
    return {"snippet": snippet, "status": status}


PLUGIN = YouTube()
