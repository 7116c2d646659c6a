"""Publishes on X through its API v2; limits and prices are those of docs.x.com, read on 20 November 2026."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pipeline.platforms.base import (
    METRICS,
    Absent,
    Account,
    AccountInfo,
    Api,
    CannotTell,
    Found,
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
from pipeline.platforms.oauth_tokens import TokenPlatform, bearer_header, expiry_of, missing_notes, scopes_of
from pipeline.platforms.payload_types import AdaptationStep, Adapted, Payload
from pipeline.platforms.rules import MEBIBYTE, BucketRule, MediaRule, images_of, problems_of
from pipeline.platforms.x import errors, media, post_counts
from pipeline.platforms.x.timeline_search import search_timeline
from pipeline.plugins import Evidence, OutcomeUnknown, PluginError, Problem, Refused
from pipeline.text.links import find_links
from pipeline.text.weighted_length import MAX_LENGTH, weighted_length

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from config.core.http_client import Client
    from pipeline.engines.base import Bucket

MAX_PREMIUM_CHARACTERS: Final = 25_000
PRICE_IN_DOLLARS: Final = "0.015"
PRICE_WITH_LINK_IN_DOLLARS: Final = "0.20"

# The limits of docs.x.com, x-api/media/quickstart/best-practices.
IMAGES_RULE: Final = MediaRule(
    ("image/jpeg", "image/png", "image/webp", "image/gif"), most=4, max_bytes=5 * MEBIBYTE, alt_max=1000
)
GIF_RULE: Final = MediaRule(("image/gif",), most=1, max_bytes=15 * MEBIBYTE, max_side=1280, alt_max=1000)
VIDEO_RULE: Final = MediaRule(
    ("video/mp4", "video/quicktime"),
    most=1,
    max_bytes=512 * MEBIBYTE,
    min_seconds=0.5,
    max_seconds=140,
    ratio=(1 / 3, 3),
    alt_max=1000,
)


def _build_rule(**changes: Any) -> BucketRule:
    """Return the rule of a bucket with X's limits and these changes."""
    return BucketRule(
        MAX_LENGTH,
        count=weighted_length,
        unit="weighted characters",
        images=IMAGES_RULE,
        video=VIDEO_RULE,
        **changes,
    )


class X(TokenPlatform):
    kind = "x"
    label = "X"
    summary = "Posts of up to 280 characters with up to four pictures, a GIF or a video; X charges for each."
    evidence = Evidence("software", "xdk 0.10", "tests/platforms/test_x_fake.py")
    buckets = ("video", "image", "text")
    shows_link_card = True
    picture_crop = "wide"
    can_reconcile = True
    can_remove = True
    metrics_given = METRICS
    settings: ClassVar[tuple[Setting, ...]] = (
        next(setting for setting in FITTING_SETTINGS if setting.name == "too_long"),
        replace(
            next(setting for setting in FITTING_SETTINGS if setting.name == "link"),
            help=f"X charges ${PRICE_WITH_LINK_IN_DOLLARS} for a post that holds a link and ${PRICE_IN_DOLLARS} for one without.",
        ),
        Setting(
            "premium",
            "The account has X Premium",
            f"Its posts may have {MAX_PREMIUM_CHARACTERS:,} characters.",
            kind="flag",
            default=False,
            is_required=False,
        ),
    )
    oauth: ClassVar[OAuth | None] = OAuth(
        authorize_url="https://x.com/i/oauth2/authorize",
        token_url="{base_url}/oauth2/token",
        scopes=("tweet.read", "tweet.write", "users.read", "media.write", "offline.access"),
        client_auth="basic",
        setup=(
            "Make an app at developer.x.com with OAuth 2.0 of the type “Web App”, read and write; "
            "posts are paid for with the credits of its account."
        ),
    )
    api: ClassVar[Api | None] = Api("https://api.x.com/2", "2", reviewed_on=date(2026, 11, 20))
    # 100 posts in 15 minutes for each user.
    pace: ClassVar[Pace] = Pace(gap=timedelta(seconds=9))
    rules: ClassVar[Mapping[Bucket, BucketRule]] = {
        "text": _build_rule(),
        "image": _build_rule(needs_text=False, needs="image"),
        "video": _build_rule(needs_text=False, needs="video"),
    }

    def rules_for(self, account: Account, bucket: Bucket) -> BucketRule | None:
        rule = self.rules.get(bucket)
        if rule is None or account.config.get("premium") is not True:
            return rule
        return replace(rule, text_max=MAX_PREMIUM_CHARACTERS)

    def adapt(self, account: Account, payload: Payload) -> Adapted:
        rule = self.rules_for(account, payload.bucket)
        if rule is None:
            return Adapted(payload, (payload.body,))
        post = fit_text(payload, rule, account.config)
        steps = post.steps
        if find_links(post.payload.body):
            message = f"It holds a link: X charges ${PRICE_WITH_LINK_IN_DOLLARS} for it instead of ${PRICE_IN_DOLLARS}."
            steps = (*steps, AdaptationStep("priced_link", message))
        disclosure = {"made_with_ai": True} if payload.is_ai_generated else {}
        return replace(post, steps=steps, disclosure=disclosure)

    def validate(self, account: Account, post: Adapted) -> tuple[Problem, ...]:
        rule = self.rules_for(account, post.payload.bucket)
        if rule is None:
            return ()
        pictures = images_of(post.payload.assets)
        has_gif = any(picture.mime_type == "image/gif" for picture in pictures)
        problems = problems_of(replace(rule, images=GIF_RULE) if has_gif else rule, post)
        if pictures and any(asset.mime_type.startswith("video/") for asset in post.payload.assets):
            message = "X takes pictures or a video in one post, not both."
            problems.append(Problem("assets", "mixed_media", message))
        return tuple(problems)

    def check_account(self, account: Account, *, http: Client, now: datetime) -> AccountInfo:
        response = ask(
            http,
            "GET",
            f"{account.base_url}/users/me?user.fields=protected",
            service="X",
            headers=bearer_header(account),
        )
        user = (json_object(response.body) or {}).get("data") if response.status == 200 else None
        if not isinstance(user, dict) or not isinstance(user.get("id"), str):
            errors.raise_for_response(response, now=now, is_commit=False)
        handle = str(user.get("username") or "")
        notes = list(
            missing_notes(
                account,
                {
                    "tweet.write": "The right to post wasn't granted; reconnect it.",
                    "media.write": "The right to upload pictures and videos wasn't granted; reconnect it.",
                    "offline.access": "The connection ends after two hours; reconnect it to keep it.",
                },
            )
        )
        if user.get("protected") is True:
            notes.append("Its posts are protected: only accepted followers see them.")
        return AccountInfo(
            external_id=user["id"],
            handle=handle,
            name=str(user.get("name") or ""),
            url=f"https://x.com/{handle}" if handle else "",
            scopes=scopes_of(account),
            expires_at=expiry_of(account),
            notes=tuple(notes),
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
        # `since` and `tried`, the first and the latest call of `prepare`, bound the search of `reconcile`.
        new_state = {**state, "since": state.get("since", now.isoformat()), "tried": now.isoformat()}
        return media.advance_uploads(account, post, new_state, http=http, now=now)

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
        body: dict[str, Any] = {}
        if post.payload.body:
            body["text"] = post.payload.body
        media_ids = [file["id"] for file in state.get("files", [])]
        if media_ids:
            body["media"] = {"media_ids": media_ids}
        body.update(post.disclosure)
        response = ask_once(
            http, "POST", f"{account.base_url}/tweets", service="X", json=body, headers=bearer_header(account)
        )
        if errors.is_duplicate(response):
            return self._find_earlier_post(account, post, state, http=http, now=now)
        is_taken = response.status in {200, 201}
        sent = sent_of(account, (json_object(response.body) or {}).get("data")) if is_taken else None
        if sent is None:
            errors.raise_for_response(response, now=now, is_commit=True)
        return sent

    def _find_earlier_post(
        self, account: Account, post: Adapted, state: Mapping[str, Any], *, http: Client, now: datetime
    ) -> Sent:
        """Return the post that X calls a duplicate, if an earlier call of this publication made it.

        Raises `Refused` if it is another publication's, and `OutcomeUnknown` if that can't be told.
        """
        # `tried` is left out, because this call made no post, and the post of an earlier call is in the list by
        # now: `reconcile` waits for that before it lets a post be sent again.
        answer = self._search(account, post, {**state, "tried": ""}, http=http, now=now)
        if isinstance(answer, Found):
            return answer.sent
        if isinstance(answer, Absent):
            message = "X doesn't take it because the account has posted the same words before."
            raise Refused(
                message, code="duplicate_content", action="Change the words, then retry.", platform_status=403
            )
        message = f"X says that it has a post with these words. {answer.reason}"
        raise OutcomeUnknown(message, code="duplicate_content", platform_status=403)

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
        del key
        return self._search(account, post, state, http=http, now=now)

    def _search(
        self, account: Account, post: Adapted, state: Mapping[str, Any], *, http: Client, now: datetime
    ) -> Found | Absent | CannotTell:
        """Find the post in the account's timeline; a failure of the search is `CannotTell`."""
        try:
            answer = search_timeline(account, post, state, http=http, now=now)
        except PluginError as error:
            return CannotTell(error.message)
        if not isinstance(answer, dict):
            return answer
        sent = sent_of(account, answer)
        return CannotTell("X's list of posts couldn't be read.") if sent is None else Found(sent)

    def remove(self, account: Account, sent: Sent, *, http: Client, now: datetime) -> None:
        response = ask(
            http,
            "DELETE",
            f"{account.base_url}/tweets/{sent.external_id}",
            service="X",
            headers=bearer_header(account),
        )
        if response.status not in {200, 404}:
            errors.raise_for_response(response, now=now, is_commit=False)

    def metrics(
        self, account: Account, sent: Sequence[tuple[Sent, datetime]], *, http: Client, now: datetime
    ) -> tuple[tuple[Sample, ...], ...]:
        return post_counts.read_samples(account, sent, http=http, now=now)


def sent_of(account: Account, data: object) -> Sent | None:
    """Return the post in X's answer as `Sent`, or `None` if it can't be read."""
    external_id = data.get("id") if isinstance(data, dict) else None
    if not isinstance(external_id, str) or not external_id.isascii() or not external_id.isdigit():
        return None
    handle = str(account.profile.get("handle") or "i/web")
    return Sent(external_id, f"https://x.com/{handle}/status/{external_id}")


PLUGIN = X()
