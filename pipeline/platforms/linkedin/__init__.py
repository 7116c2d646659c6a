"""Publishes on LinkedIn for members, through its versioned Posts API.

Calls and limits are those of MS Learn, the escaping of `commentary` that of its "Little Text Format", read on 20
November 2026.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import quote, urlsplit

from pipeline.platforms.base import (
    METRICS,
    Account,
    AccountInfo,
    Api,
    CannotTell,
    OAuth,
    Pace,
    Pending,
    Prepared,
    Ready,
    Sample,
    Sent,
    Setting,
)
from pipeline.platforms.fitting import FITTING_SETTINGS, fit_text
from pipeline.platforms.http_calls import ask, ask_once, json_object
from pipeline.platforms.linkedin import media
from pipeline.platforms.linkedin.errors import URN, find_duplicate, raise_for_response, request_headers
from pipeline.platforms.oauth_tokens import TokenPlatform, bearer_header, expiry_of, missing_notes, scopes_of
from pipeline.platforms.payload_types import Adapted, Payload
from pipeline.platforms.rules import MEBIBYTE, BucketRule, MediaRule
from pipeline.plugins import Evidence, OutcomeUnknown, Problem
from pipeline.text.links import find_links

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from config.core.http_client import Client
    from pipeline.engines.base import Bucket

ANALYTICS_SCOPE: Final = "r_member_postAnalytics"
METRICS_DELAY: Final = timedelta(days=2)
"""The age up to which a metric without a value is delayed, and not unavailable."""
QUERY_TYPES: Final = {
    "impressions": "IMPRESSION",
    "likes": "REACTION",
    "comments": "COMMENT",
    "shares": "RESHARE",
    "clicks": "LINK_CLICKS",
}
_RESERVED_CHARACTERS: Final = re.compile(r"[\\|{}\[\]()<>@#*_~]")
_HASHTAG: Final = re.compile(r"(?<![\w&/#])#(?=\w*[^\W\d_])(\w+)")
# In an address these can be percent-encoded without changing its meaning; others are sent as they are.
_ADDRESS_ESCAPES: Final = {character: f"%{ord(character):02X}" for character in "\\|{}[]()<>*"}
MAX_TEXT_CHARACTERS: Final = 3_000
MIN_VIDEO_BYTES: Final = 75 * 1024

# The pixels are LinkedIn's limit. The bytes are ours, because a picture is uploaded in one call.
IMAGES_RULE: Final = MediaRule(
    ("image/jpeg", "image/png", "image/gif"), most=20, max_bytes=20 * MEBIBYTE, max_pixels=36_152_320
)
VIDEO_RULE: Final = MediaRule(
    ("video/mp4",), most=1, max_bytes=500 * MEBIBYTE, min_seconds=3, max_seconds=30 * 60
)


def read_samples(
    account: Account, sent: Sequence[tuple[Sent, datetime]], *, http: Client, now: datetime
) -> tuple[tuple[Sample, ...], ...]:
    """Read and return a tuple of samples for each publication, in the same order.

    Without the scope for analytics, no call is made.
    """
    may_read = ANALYTICS_SCOPE in scopes_of(account)
    return tuple(
        tuple(
            _read_sample(account, metric, post, at, may_read=may_read, http=http, now=now)
            for metric in METRICS
        )
        for post, at in sent
    )


def _read_sample(
    account: Account, metric: str, sent: Sent, at: datetime, *, may_read: bool, http: Client, now: datetime
) -> Sample:
    """Read one metric of one post. Raises as `raise_for_response` if LinkedIn fails."""
    if metric not in QUERY_TYPES:
        return Sample(metric, None, "unsupported")
    if not may_read:
        return Sample(metric, None, "unavailable")
    kind = "ugc" if ":ugcPost:" in sent.external_id else "share"
    entity = f"({kind}:{quote(sent.external_id, safe='')})"
    url = (
        f"{account.base_url}/rest/memberCreatorPostAnalytics?q=entity&entity={entity}"
        f"&queryType={QUERY_TYPES[metric]}&aggregation=TOTAL"
    )
    response = ask(http, "GET", url, service="LinkedIn", headers=request_headers(account))
    answer = json_object(response.body)
    if response.status in {400, 403, 404, 422} and answer is not None:
        # LinkedIn may refuse one metric, such as a retired one; the others are still read.
        return Sample(metric, None, "unavailable")
    if response.status != 200 or answer is None:
        raise_for_response(response, account=account, now=now, is_commit=False)
    value = _count_in(answer.get("elements"))
    if value is not None:
        return Sample(metric, value)
    return Sample(metric, None, "delayed" if now - at < METRICS_DELAY else "unavailable")


def _count_in(elements: Any) -> int | None:
    """Return the count in the first element, or `None` if there is none."""
    first = elements[0] if isinstance(elements, list) and elements else None
    value = first.get("count") if isinstance(first, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def little_text(text: str) -> str:
    """Return the text as `commentary` takes it: addresses stay links, hashtags can be followed."""
    pieces, copied_to = [], 0
    for link in find_links(text):
        if link.has_scheme:
            pieces += [
                _escape_text(text[copied_to : link.start]),
                _escape_address(text[link.start : link.end]),
            ]
            copied_to = link.end
    return "".join([*pieces, _escape_text(text[copied_to:])])


def count_characters(text: str) -> int:
    """Return the length of the text as LinkedIn counts it: escaped."""
    return len(little_text(text))


def _escape_address(url: str) -> str:
    """Return the address with the characters that `commentary` reserves percent-encoded, as far as they can be."""
    return "".join(_ADDRESS_ESCAPES.get(character, character) for character in url)


def _escape_text(text: str) -> str:
    r"""Return a text without addresses, escaped, with its hashtags as templates such as `{hashtag|\#|news}`."""
    pieces, copied_to = [], 0
    for match in _HASHTAG.finditer(text):
        pieces += [
            _escape_reserved(text[copied_to : match.start()]),
            rf"{{hashtag|\#|{_escape_reserved(match[1])}}}",
        ]
        copied_to = match.end()
    return "".join([*pieces, _escape_reserved(text[copied_to:])])


def _escape_reserved(text: str) -> str:
    """Return the text with a backslash before each reserved character."""
    return _RESERVED_CHARACTERS.sub(lambda match: f"\\{match[0]}", text)


def _build_rule(**changes: Any) -> BucketRule:
    """Return the rule of a bucket with LinkedIn's limits and these changes."""
    return BucketRule(
        MAX_TEXT_CHARACTERS, count=count_characters, images=IMAGES_RULE, video=VIDEO_RULE, **changes
    )


class LinkedIn(TokenPlatform):
    kind = "linkedin"
    label = "LinkedIn"
    summary = "Posts of up to 3,000 characters on a member's profile, with pictures, a video or a link card."
    secret_addresses = (
        # The addresses that the bytes of a file are sent to.
        r"(/dms-uploads/)[^\s\"'<>?]+",
    )
    evidence = Evidence("documents", "November 2026", "tests/platforms/test_linkedin.py")
    buckets = ("video", "image", "text")
    shows_link_card = True
    can_remove = True
    metrics_given = ("impressions", "likes", "comments", "shares", "clicks")
    settings: ClassVar[tuple[Setting, ...]] = (
        next(setting for setting in FITTING_SETTINGS if setting.name == "too_long"),
        Setting(
            "link",
            "Link to the source",
            (
                "A card shows the title and links to the source; LinkedIn makes none on its own. Posts "
                "with media have no card."
            ),
            kind="choice",
            choices=(("none", "Leave it out"), ("end", "Add it at the end"), ("card", "Show it as a card")),
            default="none",
            is_required=False,
        ),
        Setting(
            "visibility",
            "Who sees the posts",
            kind="choice",
            choices=(("PUBLIC", "Everybody"), ("CONNECTIONS", "The member's connections")),
            default="PUBLIC",
            is_required=False,
        ),
    )
    oauth: ClassVar[OAuth | None] = OAuth(
        authorize_url="https://www.linkedin.com/oauth/v2/authorization",
        token_url="https://www.linkedin.com/oauth/v2/accessToken",
        scopes=("openid", "profile", "w_member_social"),
        # LinkedIn has PKCE only for native applications, at another address.
        uses_pkce=False,
        setup=(
            "Make an app at linkedin.com/developers and add the products “Share on LinkedIn” and “Sign In with "
            "LinkedIn using OpenID Connect”; both are given at once."
        ),
    )
    # A version lives for at least twelve months.
    api: ClassVar[Api | None] = Api(
        "https://api.linkedin.com", "202610", reviewed_on=date(2026, 11, 20), expires_on=date(2027, 10, 1)
    )
    # LinkedIn shows its limits in the developer portal only; 100 to 150 posts a day are commonly quoted.
    pace: ClassVar[Pace] = Pace(per_day=100)
    rules: ClassVar[Mapping[Bucket, BucketRule]] = {
        "text": _build_rule(),
        "image": _build_rule(needs_text=False, needs="image"),
        "video": _build_rule(needs_text=False, needs="video"),
    }

    def adapt(self, account: Account, payload: Payload) -> Adapted:
        rule = self.rules_for(account, payload.bucket)
        if rule is None:
            return Adapted(payload, (payload.body,))
        return fit_text(payload, rule, account.config)

    def validate(self, account: Account, post: Adapted) -> tuple[Problem, ...]:
        problems = list(super().validate(account, post))
        files = media.files_of(post)
        videos = [file for file in files if file.mime_type.startswith("video/")]
        if videos and len(videos) < len(files):
            message = "LinkedIn takes pictures or a video in one post, not both."
            problems.append(Problem("assets", "mixed_media", message))
        if any(0 < video.bytes < MIN_VIDEO_BYTES for video in videos):
            message = f"A video has at least {MIN_VIDEO_BYTES:,} bytes at LinkedIn."
            problems.append(Problem("assets", "file_too_small", message))
        return tuple(problems)

    def check_account(self, account: Account, *, http: Client, now: datetime) -> AccountInfo:
        response = ask(
            http, "GET", f"{account.base_url}/v2/userinfo", service="LinkedIn", headers=bearer_header(account)
        )
        user = json_object(response.body) if response.status == 200 else None
        if user is None or not isinstance(user.get("sub"), str) or not user["sub"]:
            raise_for_response(response, account=account, now=now, is_commit=False)
        missing = {"w_member_social": "The right to post wasn't granted; reconnect it."}
        return AccountInfo(
            external_id=user["sub"],
            name=str(user.get("name") or ""),
            scopes=scopes_of(account),
            expires_at=expiry_of(account),
            notes=missing_notes(account, missing),
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
        return media.advance_uploads(account, post, state, http=http, now=now)

    def poll(
        self, account: Account, post: Adapted, state: Mapping[str, Any], *, http: Client, now: datetime
    ) -> Pending | Ready:
        del post
        return media.poll_uploads(account, state, http=http, now=now)

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
        response = ask_once(
            http,
            "POST",
            f"{account.base_url}/rest/posts",
            service="LinkedIn",
            json=body_of(account, post, state),
            headers=request_headers(account),
        )
        urn = response.headers.get("x-restli-id", "").strip() if response.status == 201 else ""
        if URN.fullmatch(urn):
            return sent_of(urn)
        duplicate = find_duplicate(response)
        if duplicate is None:
            raise_for_response(response, account=account, now=now, is_commit=True)
        if not duplicate.urn:
            message = "LinkedIn says that it has this post already, and not where."
            raise OutcomeUnknown(message, code="duplicate_content", platform_status=response.status)
        # The account has this text already, from an earlier call whose answer was lost, or by another task.
        return replace(sent_of(duplicate.urn), details={"was_there_before": True})

    def reconcile(
        self,
        account: Account,
        post: Adapted,
        state: Mapping[str, Any],
        *,
        http: Client,
        key: str,
        now: datetime,
    ) -> CannotTell:
        """Return `CannotTell`, because the permission to post doesn't include reading.

        A second call with the same text would be answered with the first post, or make a second one.
        """
        del account, post, state, http, key, now
        return CannotTell("LinkedIn doesn't let this connection read the member's posts.")

    def remove(self, account: Account, sent: Sent, *, http: Client, now: datetime) -> None:
        url = f"{account.base_url}/rest/posts/{quote(sent.external_id, safe='')}"
        response = ask(http, "DELETE", url, service="LinkedIn", headers=request_headers(account))
        if response.status not in {200, 204, 404}:
            raise_for_response(response, account=account, now=now, is_commit=False)

    def metrics(
        self, account: Account, sent: Sequence[tuple[Sent, datetime]], *, http: Client, now: datetime
    ) -> tuple[tuple[Sample, ...], ...]:
        return read_samples(account, sent, http=http, now=now)


def sent_of(urn: str) -> Sent:
    """Return a post's URN as `Sent`."""
    return Sent(urn, f"https://www.linkedin.com/feed/update/{urn}")


def body_of(account: Account, post: Adapted, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the post as the Posts API takes it."""
    body: dict[str, Any] = {
        "author": media.owner_of(account),
        "commentary": little_text(post.payload.body),
        "visibility": account.config.get("visibility", "PUBLIC"),
        "distribution": {
            "feedDistribution": "MAIN_FEED",
            "targetEntities": [],
            "thirdPartyDistributionChannels": [],
        },
        "lifecycleState": "PUBLISHED",
        "isReshareDisabledByAuthor": False,
    }
    content = _build_content(account, post, [file["urn"] for file in state.get("files", [])])
    return {**body, "content": content} if content else body


def _build_content(account: Account, post: Adapted, urns: Sequence[str]) -> dict[str, Any]:
    """Return the post's files or link card, or an empty dict if it has neither."""
    payload = post.payload
    files = [
        {"id": urn, **({"altText": file.alt_text} if file.alt_text else {})}
        for urn, file in zip(urns, media.files_of(post), strict=True)
    ]
    if len(files) > 1:
        return {"multiImage": {"images": files}}
    if files:
        has_title = payload.bucket == "video" and payload.title
        return {"media": {**files[0], **({"title": payload.title} if has_title else {})}}
    if payload.link and account.config.get("link") == "card":
        title = payload.title or urlsplit(payload.link).hostname or payload.link
        return {"article": {"source": payload.link, "title": title}}
    return {}


PLUGIN = LinkedIn()
