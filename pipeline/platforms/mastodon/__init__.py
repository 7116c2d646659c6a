"""Publishes posts, threads, pictures and videos on Mastodon and servers that speak its API.

The parts of a thread are posted one after another, each with its own key. If one is refused, those before it are
deleted; if its outcome isn't known, the thread is looked up and goes on after the last part that is there. The API
is that of docs.joinmastodon.org, methods statuses, media, accounts, instance (read 2026-11-20).
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import quote

from pipeline.platforms import http_calls
from pipeline.platforms.base import (
    Absent,
    Account,
    AccountInfo,
    Api,
    CannotTell,
    Found,
    Pending,
    Platform,
    Prepared,
    Ready,
    Sample,
    Sent,
    Setting,
)
from pipeline.platforms.fitting import FITTING_SETTINGS, fit_text
from pipeline.platforms.http_calls import json_object
from pipeline.platforms.mastodon.account import account_info
from pipeline.platforms.mastodon.calls import call, read_object
from pipeline.platforms.mastodon.history import (
    PAGE_SIZE,
    as_sent,
    compare_similar,
    earliest_post_at,
    find_chain,
    find_posted_chain,
    read_before_posting,
    read_newest_posts,
    read_posts_after,
    select_since,
    sent_of,
)
from pipeline.platforms.mastodon.posts import (
    delete_status,
    file_ids,
    files_of,
    form_of,
    key_of,
    read_accepted,
    read_counts,
    remove_thread,
    samples_of,
    unfinished_thread,
    upload_file,
    warning_of,
)
from pipeline.platforms.mastodon.rules import RULES, rule_of
from pipeline.plugins import Evidence, PluginError, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from config.core.http_client import Client
    from pipeline.engines.base import Bucket
    from pipeline.platforms.payload_types import Adapted, Payload
    from pipeline.platforms.rules import BucketRule

UPLOAD_LIFETIME: Final = timedelta(hours=20)
"""The time for which an uploaded file is used: the server deletes a file without a post after about a day."""
FILE_POLL_INTERVAL: Final = timedelta(seconds=5)


class Mastodon(Platform):
    kind = "mastodon"
    label = "Mastodon"
    buckets = ("text", "image", "video")
    shows_link_card = True
    picture_crop = "wide"
    summary = "Posts, threads, pictures and videos for an account on Mastodon or a server that speaks its interface."
    evidence = Evidence("software", "Mastodon.py 2.3", "tests/platforms/test_mastodon_fake.py")
    can_reconcile = True
    can_remove = True
    idempotency = "server_key"
    metrics_given = ("likes", "comments", "shares")
    text_limit = 500
    api = Api("", "v1", date(2026, 11, 20))
    rules: ClassVar[Mapping[Bucket, BucketRule]] = RULES
    settings = (
        Setting("server", "Server", "The account's server, such as https://mastodon.social.", kind="url"),
        Setting(
            "access_token",
            "Access token",
            "On the server: Preferences, Development, New application with the rights read and write; then its access token.",
            kind="password",
            is_secret=True,
        ),
        Setting(
            "visibility",
            "Who sees it",
            kind="choice",
            choices=(
                ("public", "Everyone"),
                ("unlisted", "Everyone, but not in feeds"),
                ("private", "Followers"),
            ),
            default="public",
            is_required=False,
        ),
        Setting(
            "content_warning",
            "Content warning",
            "Shown before every post of this outlet, which opens on a click. It counts as part of the text.",
            is_required=False,
            max_length=200,
        ),
        Setting(
            "language",
            "Language",
            "Two letters, such as en. Without it each item's own is given.",
            is_required=False,
            max_length=10,
        ),
        *FITTING_SETTINGS,
    )

    def clean_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        server = config.get("server")
        if isinstance(server, str) and server.strip() and "://" not in server:
            # People enter their server's name without a scheme.
            config = {**config, "server": f"https://{server.strip()}"}
        return super().clean_config(config)

    def rules_for(self, account: Account, bucket: Bucket) -> BucketRule | None:
        limits = account.profile.get("limits")
        return rule_of(bucket, limits if isinstance(limits, dict) else {}, warning_of(account))

    def adapt(self, account: Account, payload: Payload) -> Adapted:
        rule = self.rules_for(account, payload.bucket) or RULES["text"]
        return fit_text(payload, rule, account.config)

    def check_account(self, account: Account, *, http: Client, now: datetime) -> AccountInfo:
        return account_info(account, http=http, now=now)

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
        """Take one step: note the account's newest post, upload a file, or find earlier parts of a thread.

        Uploads that are about to expire are made again.
        """
        files = files_of(post)
        if "after" not in state:
            new_state = read_before_posting(account, post, http=http, key=key, now=now)
            return Prepared(new_state, is_done=not files or bool(new_state["sent"]))
        new_state = dict(state)
        uploads = list(new_state["uploads"])
        is_stale = any(datetime.fromisoformat(upload["at"]) + UPLOAD_LIFETIME <= now for upload in uploads)
        if len(post.parts) > 1 and (is_stale or len(uploads) == len(files)):
            new_state["sent"] = sent_of(find_posted_chain(account, post, new_state, http=http, now=now))
        if new_state["sent"]:
            # The first post, which is public, has the files already.
            return Prepared(new_state)
        uploads = [] if is_stale else uploads
        if len(uploads) < len(files):
            uploads.append(upload_file(account, files[len(uploads)], len(uploads), http=http, now=now))
        new_state["uploads"] = uploads
        return Prepared(new_state, is_done=len(uploads) == len(files))

    def poll(
        self, account: Account, post: Adapted, state: Mapping[str, Any], *, http: Client, now: datetime
    ) -> Pending | Ready:
        del post
        for upload in [] if state["sent"] else state["uploads"]:
            if upload["is_ready"]:
                continue
            response = call(account, "GET", f"/api/v1/media/{quote(upload['id'], safe='')}", http=http)
            answer = json_object(response.body)
            if response.status == 206 or (
                response.status == 200 and answer is not None and not answer.get("url")
            ):
                return Pending(FILE_POLL_INTERVAL)
            read_object(response, now=now)
        return Ready()

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
        sent: list[dict[str, str]] = list(state["sent"])
        # A worker's lease is longer than two calls; the rest of a long thread is sent with the next try.
        deadline = monotonic() + 2 * http_calls.TIMEOUT_SECONDS
        for part in range(len(sent), len(post.parts)):
            seconds_left = deadline - monotonic()
            if sent and seconds_left < http_calls.TIMEOUT_SECONDS / 4:
                raise unfinished_thread(
                    len(sent), len(post.parts), "The rest takes longer than one call may."
                )
            form = form_of(account, post, state, part, sent[-1]["id"] if sent else "")
            try:
                response = call(
                    account,
                    "POST",
                    "/api/v1/statuses",
                    http=http,
                    is_commit=True,
                    json=form,
                    headers={"Idempotency-Key": key_of(key, part, post.parts[part])},
                    timeout=min(http_calls.TIMEOUT_SECONDS, seconds_left),
                )
                sent.append(read_accepted(response, now, is_first=not sent))
            except Refused as error:
                remove_thread(account, sent, error, http=http, now=now)
                raise
            except PluginError as error:
                if not sent:
                    raise
                raise unfinished_thread(len(sent), len(post.parts), error.message) from error
        return as_sent(sent)

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
        """Find the posts among the account's newest ones.

        A thread of which only the beginning is there counts as absent, because the next try goes on after it.
        If `state` was lost, posts older than the publication are left out.
        """
        try:
            if "after" in state:
                statuses = read_posts_after(account, state["after"], http=http, now=now)
            else:
                statuses = read_newest_posts(account, http=http, now=now)
        except PluginError as error:
            return CannotTell(error.message)
        if "after" not in state and not post.parts[0].strip():
            return CannotTell("Without words it isn't recognized among the account's posts.")
        is_complete = len(statuses) < PAGE_SIZE
        if "after" not in state:
            earliest = earliest_post_at(key, now)
            is_complete = is_complete or any(
                status.made_at and status.made_at < earliest for status in statuses
            )
            statuses = select_since(statuses, earliest)
        files = file_ids(state)
        chain = find_chain(statuses, post.parts, files)
        if len(chain) == len(post.parts):
            return Found(as_sent(sent_of(chain)))
        if chain and "after" not in state:
            return CannotTell(f"{len(chain)} of {len(post.parts)} posts of this thread are there.")
        comparison = None if chain else compare_similar(account, post, statuses, files, http=http)
        if comparison is not None:
            return comparison
        if not chain and not is_complete:
            return CannotTell("The account has posted so much since then that it can't be looked through.")
        return Absent(len(chain), len(post.parts)) if chain else Absent()

    def remove(self, account: Account, sent: Sent, *, http: Client, now: datetime) -> None:
        if not sent.external_id:
            message = "The post's id isn't known here."
            raise Refused(message, code="post_not_known", action="Delete the post on the server.")
        # Posts are deleted from the last to the first, so that what is left after a failure is still a thread.
        for status_id in reversed(sent.details.get("ids") or [sent.external_id]):
            delete_status(account, status_id, http=http, now=now)

    def metrics(
        self, account: Account, sent: Sequence[tuple[Sent, datetime]], *, http: Client, now: datetime
    ) -> tuple[tuple[Sample, ...], ...]:
        return tuple(
            samples_of(read_counts(account, post.external_id, http=http, now=now)) for post, _ in sent
        )


PLUGIN = Mastodon()
