"""Publishes posts and threads on Bluesky (AT Protocol), with pictures, links, mentions and hashtags.

Every post has a record key of ours, and the posts of a thread are written in one call that succeeds or fails as a
whole: a second call meets the first one's keys. Video needs a separate service and isn't offered.
The limits are those of lexicons/app/bsky/feed/post.json and embed/images.json of bluesky-social/atproto, and of
docs.bsky.app, rate limits (read 2026-11-20).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlencode

from pipeline.platforms import http_calls
from pipeline.platforms.base import (
    Absent,
    Account,
    AccountInfo,
    Api,
    CannotTell,
    Found,
    Pace,
    Platform,
    Prepared,
    Renewed,
    Sample,
    Sent,
    Setting,
)
from pipeline.platforms.bluesky.attachments import (
    card_of,
    find_did_and_pds,
    handles_in,
    resolve_handle,
    samples_of,
    sent_from,
    upload_image,
)
from pipeline.platforms.bluesky.calls import (
    SERVICE_NAME,
    call,
    error_of,
    open_session,
    raise_for_response,
    refresh_session,
    stored_session,
    text_field,
    token_expiry,
    unreadable_answer,
)
from pipeline.platforms.bluesky.records import COLLECTION, MAX_THREAD_POSTS, record_key, records_of, uri_of
from pipeline.platforms.fitting import FITTING_SETTINGS, fit_text
from pipeline.platforms.http_calls import json_object
from pipeline.platforms.rules import BucketRule, MediaRule, graphemes, images_of
from pipeline.platforms.upload_bodies import file_of
from pipeline.plugins import Evidence, PluginError, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from config.core.http_client import Client
    from pipeline.platforms.payload_types import Adapted, Payload

POSTS_PER_METRICS_CALL: Final = 25
HANDLES_PER_STEP: Final = 2
"""The handles that one step resolves, because a step makes two short calls at most."""
UPLOAD_LIFETIME: Final = timedelta(minutes=50)
"""The time for which an uploaded picture is used: the server may delete it after an hour if no post has it."""
PUBLIC_APPVIEW: Final = "https://public.api.bsky.app"

_IMAGES_RULE: Final = MediaRule(("image/jpeg", "image/png", "image/webp"), most=4, max_bytes=2_000_000)
_TEXT_RULE: Final = BucketRule(
    300,
    count=graphemes,
    unit="graphemes",
    text_max_bytes=3000,
    parts_most=MAX_THREAD_POSTS,
    images=_IMAGES_RULE,
)
_IMAGE_RULE: Final = replace(_TEXT_RULE, needs_text=False, needs="image")


class Bluesky(Platform):
    kind = "bluesky"
    label = "Bluesky"
    buckets = ("text", "image")
    shows_link_card = True
    summary = "Posts, threads and pictures for an account on Bluesky or another server of the AT Protocol."
    # An account's server (PDS) counts no likes; Bluesky's own AppView does, which isn't run in the test.
    evidence = Evidence("server", "PDS 0.4.217", "tests/real/test_bluesky.py", gap="counts")
    can_reconcile = True
    can_remove = True
    idempotency = "client_id"
    metrics_given = ("likes", "comments", "shares")
    text_limit = 300
    text_unit = "graphemes"
    api = Api("https://bsky.social", "com.atproto", date(2026, 11, 20))
    # 35,000 points a day, 3 for each post.
    pace = Pace(per_day=11_666)
    rules: ClassVar[Mapping[Any, BucketRule]] = {"text": _TEXT_RULE, "image": _IMAGE_RULE}
    settings = (
        Setting("handle", "Handle", "As shown in your profile, such as name.bsky.social.", max_length=253),
        Setting(
            "app_password",
            "App password",
            "In Bluesky: Settings, Privacy and security, App passwords. Not the password you sign in with.",
            kind="password",
            is_secret=True,
        ),
        Setting(
            "server",
            "Server",
            "Where the account signs in; leave it empty for bsky.social.",
            kind="url",
            is_required=False,
        ),
        Setting(
            "appview",
            "Address for counts",
            "Who is asked for likes, replies and reposts; leave it empty for Bluesky's own.",
            kind="url",
            is_required=False,
        ),
        *FITTING_SETTINGS,
    )

    def check_account(self, account: Account, *, http: Client, now: datetime) -> AccountInfo:
        response, session = call(
            account,
            stored_session(account, now=now),
            "GET",
            "com.atproto.server.getSession",
            http=http,
            now=now,
        )
        answer = json_object(response.body)
        if response.status != 200 or not text_field(answer, "did"):
            if response.status >= 400:
                raise_for_response(response, now=now)
            raise unreadable_answer(response)
        handle = text_field(answer, "handle")
        did = text_field(answer, "did")
        notes = []
        if answer is not None and answer.get("active") is False:
            notes.append(
                f"Bluesky says that the account is not active ({text_field(answer, 'status') or 'no reason given'})."
            )
        return AccountInfo(
            external_id=did,
            handle=handle,
            url=f"https://bsky.app/profile/{handle or did}",
            expires_at=token_expiry(session.access),
            config={"pds": session.pds},
            # The platform allows few sign-ins a day, so later calls reuse this session.
            credentials=session.tokens if session.is_new else {},
            notes=tuple(notes),
        )

    def renew(self, account: Account, *, http: Client, now: datetime) -> Renewed | None:
        """Refresh the session with its refresh token, or sign in with the app password."""
        refresh_token = str(account.credentials.get("refresh_token", ""))
        refresh_expires_at = token_expiry(refresh_token)
        session = None
        if refresh_expires_at is not None and refresh_expires_at > now:
            session = refresh_session(account, refresh_token, http=http, now=now)
        session = session or open_session(account, http=http, now=now)
        credentials = {"app_password": account.credentials["app_password"], **session.tokens}
        return Renewed(credentials, token_expiry(session.access))

    def adapt(self, account: Account, payload: Payload) -> Adapted:
        return fit_text(payload, self.rules[payload.bucket], account.config)

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
        new_state = dict(state)
        unknown = [handle for handle in handles_in(post) if handle not in new_state.get("mentions", {})]
        if unknown:
            mentions = {
                handle: resolve_handle(account, handle, http=http, now=now)
                for handle in unknown[:HANDLES_PER_STEP]
            }
            new_state["mentions"] = {**new_state.get("mentions", {}), **mentions}
            return Prepared(new_state, is_done=False)
        images = images_of(post.payload.assets)
        blobs = list(new_state.get("blobs", []))
        if any(datetime.fromisoformat(uploaded["at"]) + UPLOAD_LIFETIME <= now for uploaded in blobs):
            blobs = []
        if len(blobs) < len(images):
            image = images[len(blobs)]
            blob = upload_image(account, file_of("file", image, len(blobs)), http=http, now=now)
            blobs.append(
                {
                    "blob": blob,
                    "alt": image.alt_text,
                    "width": image.width,
                    "height": image.height,
                    "at": now.isoformat(),
                }
            )
        new_state["blobs"] = blobs
        return Prepared(new_state, is_done=len(blobs) >= len(images))

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
        session = stored_session(account, now=now) or open_session(account, http=http, now=now)
        records = records_of(post, {**state, "card": card_of(post)}, did=session.did, key=key, now=now)
        writes = [
            {
                "$type": "com.atproto.repo.applyWrites#create",
                "collection": COLLECTION,
                "rkey": record_key(key, part),
                "value": record,
            }
            for part, record in enumerate(records)
        ]
        response, _ = call(
            account,
            session,
            "POST",
            "com.atproto.repo.applyWrites",
            http=http,
            now=now,
            is_commit=True,
            json={"repo": session.did, "writes": writes},
        )
        if response.status != 200:
            raise_for_response(response, now=now, is_commit=True)
        if json_object(response.body) is None:
            raise unreadable_answer(response, is_commit=True)
        return sent_from(post, state, did=session.did, key=key)

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
        """Look up the first post's record.

        Reading a record needs no session, so that this works even if the account is locked out.
        """
        try:
            did, pds = find_did_and_pds(account, http=http, now=now)
            query = urlencode({"repo": did, "collection": COLLECTION, "rkey": record_key(key, 0)})
            response = http_calls.ask(
                http, "GET", f"{pds}/xrpc/com.atproto.repo.getRecord?{query}", service=SERVICE_NAME
            )
        except PluginError as error:
            return CannotTell(error.message)
        answer = json_object(response.body)
        if response.status == 200 and text_field(answer, "uri") == uri_of(did, key, 0):
            # The thread's other posts were written in the same call.
            return Found(sent_from(post, state, did=did, key=key))
        message = text_field(answer, "message")
        if response.status == 400 and (
            error_of(response) == "RecordNotFound" or message.startswith("Could not locate record")
        ):
            return Absent()
        return CannotTell(f"{SERVICE_NAME} answered {response.status} when it was asked for the post.")

    def remove(self, account: Account, sent: Sent, *, http: Client, now: datetime) -> None:
        # Posts are deleted from the last to the first, so that what is left after a failure is still a thread.
        for uri in reversed(sent.details.get("uris") or [sent.external_id]):
            parts = uri.removeprefix("at://").split("/")
            if not uri.startswith("at://") or len(parts) != 3:
                message = "The post's id isn't known here."
                action = "Delete the post in Bluesky."
                raise Refused(message, code="post_not_known", action=action)
            response, _ = call(
                account,
                stored_session(account, now=now),
                "POST",
                "com.atproto.repo.deleteRecord",
                http=http,
                now=now,
                json={"repo": parts[0], "collection": parts[1], "rkey": parts[2]},
            )
            if response.status != 200:
                raise_for_response(response, now=now)

    def metrics(
        self, account: Account, sent: Sequence[tuple[Sent, datetime]], *, http: Client, now: datetime
    ) -> tuple[tuple[Sample, ...], ...]:
        base = str(account.config.get("appview") or PUBLIC_APPVIEW).rstrip("/")
        uris = list(
            dict.fromkeys(post.external_id for post, _ in sent if post.external_id.startswith("at://"))
        )
        counts: dict[str, Mapping[str, Any]] = {}
        for start in range(0, len(uris), POSTS_PER_METRICS_CALL):
            query = urlencode([("uris", uri) for uri in uris[start : start + POSTS_PER_METRICS_CALL]])
            response = http_calls.ask(
                http, "GET", f"{base}/xrpc/app.bsky.feed.getPosts?{query}", service=SERVICE_NAME
            )
            if response.status != 200:
                raise_for_response(response, now=now)
            posts = (json_object(response.body) or {}).get("posts")
            if not isinstance(posts, list):
                raise unreadable_answer(response)
            counts.update({text_field(post, "uri"): post for post in posts if isinstance(post, dict)})
        return tuple(samples_of(counts.get(post.external_id, {})) for post, _ in sent)


PLUGIN = Bluesky()
