"""Posts and threads on Bluesky (AT Protocol), with pictures, links, mentions and hashtags.

Every post has a record key of ours, and the posts of a thread are written in one step that the server takes whole or
not at all: a second call meets the first one's keys. Video goes through a service of its own and isn't offered.
Limits: lexicons/app/bsky/feed/post.json and embed/images.json of bluesky-social/atproto, docs.bsky.app rate-limits
(read 2026-11-20).
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
from pipeline.platforms.bluesky.calls import (
    WHAT,
    call,
    ends_at,
    error_of,
    fail,
    no_answer,
    open_session,
    refresh_session,
    stored_session,
    text_field,
    unreadable_answer,
)
from pipeline.platforms.bluesky.post_parts import (
    card_of,
    did_of,
    handles_in,
    place_of,
    samples_of,
    sent_from,
    upload_image,
)
from pipeline.platforms.bluesky.records import COLLECTION, MOST_PARTS, record_key, records_of, uri_of
from pipeline.platforms.fitting import FITTING, fit_text
from pipeline.platforms.http_calls import json_object
from pipeline.platforms.rules import BucketRule, MediaRule, graphemes, images_of
from pipeline.platforms.upload_bodies import file_of
from pipeline.plugins import Evidence, PluginError, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from config.core.http_client import Client
    from pipeline.platforms.payload_types import Adapted, Payload

METRICS_PAGE: Final = 25
HANDLES_AT_ONCE: Final = 2
KEEPS_UPLOADS: Final = timedelta(minutes=50)
"""A picture that no post names is deleted at some time, after an hour at the earliest."""
PUBLIC: Final = "https://public.api.bsky.app"

_IMAGES: Final = MediaRule(("image/jpeg", "image/png", "image/webp"), most=4, max_bytes=2_000_000)
_TEXT: Final = BucketRule(
    300, count=graphemes, unit="graphemes", text_max_bytes=3000, parts_most=MOST_PARTS, images=_IMAGES
)
_IMAGE: Final = replace(_TEXT, needs_text=False, needs="image")


class Bluesky(Platform):
    kind = "bluesky"
    label = "Bluesky"
    buckets = ("text", "image")
    shows_link_card = True
    summary = "Posts, threads and pictures for an account on Bluesky or another server of the AT Protocol."
    # The server of an account counts nothing; Bluesky's own AppView does.
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
    rules: ClassVar[Mapping[Any, BucketRule]] = {"text": _TEXT, "image": _IMAGE}
    settings = (
        Setting(
            "handle", "Handle", "As it stands in your profile, such as name.bsky.social.", max_length=253
        ),
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
        *FITTING,
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
                fail(response, now=now)
            raise no_answer(response)
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
            expires_at=ends_at(session.access),
            config={"pds": session.pds},
            # The platform takes few sign-ins a day: the calls that follow go on with this one.
            credentials=session.tokens if session.is_new else {},
            notes=tuple(notes),
        )

    def renew(self, account: Account, *, http: Client, now: datetime) -> Renewed | None:
        """The session goes on by its own token; the app password signs in where there is none, or it was refused."""
        refresh = str(account.credentials.get("refresh_token", ""))
        ends = ends_at(refresh)
        session = None
        if ends is not None and ends > now:
            session = refresh_session(account, refresh, http=http, now=now)
        session = session or open_session(account, http=http, now=now)
        credentials = {"app_password": account.credentials["app_password"], **session.tokens}
        return Renewed(credentials, ends_at(session.access))

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
        kept = dict(state)
        unknown = [handle for handle in handles_in(post) if handle not in kept.get("mentions", {})]
        if unknown:
            found = {
                handle: did_of(account, handle, http=http, now=now) for handle in unknown[:HANDLES_AT_ONCE]
            }
            kept["mentions"] = {**kept.get("mentions", {}), **found}
            return Prepared(kept, is_done=False)
        images = images_of(post.payload.assets)
        blobs = list(kept.get("blobs", []))
        if any(datetime.fromisoformat(one["at"]) + KEEPS_UPLOADS <= now for one in blobs):
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
        kept["blobs"] = blobs
        return Prepared(kept, is_done=len(blobs) >= len(images))

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
            fail(response, now=now, is_commit=True)
        if json_object(response.body) is None:
            raise unreadable_answer(response)
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
        """Reading records needs no session, so that an account that was locked out can be asked for, too."""
        try:
            did, pds = place_of(account, http=http, now=now)
            query = urlencode({"repo": did, "collection": COLLECTION, "rkey": record_key(key, 0)})
            response = http_calls.ask(
                http, "GET", f"{pds}/xrpc/com.atproto.repo.getRecord?{query}", what=WHAT
            )
        except PluginError as error:
            return CannotTell(error.message)
        answer = json_object(response.body)
        if response.status == 200 and text_field(answer, "uri") == uri_of(did, key, 0):
            # Its other posts were written in the same step.
            return Found(sent_from(post, state, did=did, key=key))
        words = text_field(answer, "message")
        if response.status == 400 and (
            error_of(response) == "RecordNotFound" or words.startswith("Could not locate record")
        ):
            return Absent()
        return CannotTell(f"{WHAT} answered {response.status} when it was asked for the post.")

    def remove(self, account: Account, sent: Sent, *, http: Client, now: datetime) -> None:
        # From the last to the first: what is left after a failure is still a thread.
        for uri in reversed(sent.details.get("uris") or [sent.external_id]):
            parts = uri.removeprefix("at://").split("/")
            if not uri.startswith("at://") or len(parts) != 3:
                message = "Which post it is isn't known here."
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
                fail(response, now=now)

    def metrics(
        self, account: Account, sent: Sequence[tuple[Sent, datetime]], *, http: Client, now: datetime
    ) -> tuple[tuple[Sample, ...], ...]:
        base = str(account.config.get("appview") or PUBLIC).rstrip("/")
        uris = list(dict.fromkeys(one.external_id for one, _ in sent if one.external_id.startswith("at://")))
        counts: dict[str, Mapping[str, Any]] = {}
        for start in range(0, len(uris), METRICS_PAGE):
            query = urlencode([("uris", uri) for uri in uris[start : start + METRICS_PAGE]])
            response = http_calls.ask(http, "GET", f"{base}/xrpc/app.bsky.feed.getPosts?{query}", what=WHAT)
            if response.status != 200:
                fail(response, now=now)
            posts = (json_object(response.body) or {}).get("posts")
            if not isinstance(posts, list):
                raise no_answer(response)
            counts.update({text_field(one, "uri"): one for one in posts if isinstance(one, dict)})
        return tuple(samples_of(counts.get(one.external_id, {})) for one, _ in sent)


PLUGIN = Bluesky()
