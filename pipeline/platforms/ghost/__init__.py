"""Publishes articles and newsletters on Ghost: first as a draft, which one call then makes public.

Until then the draft's slug is the publication's key. The call names the moment of the draft's last change, so that
the site refuses it if the post has changed since, also by an earlier call like it. Ghost sends the email of a post
once.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pipeline.platforms.article_html import (
    ARTICLE_SETTINGS,
    as_html,
    empty_article_problems,
    remove_half_characters,
)
from pipeline.platforms.base import (
    Absent,
    Account,
    AccountInfo,
    Api,
    CannotTell,
    Found,
    Platform,
    Prepared,
    Sample,
    Sent,
    Setting,
)
from pipeline.platforms.ghost.drafts import (
    MAX_EXCERPT_CHARACTERS,
    MAX_SUBJECT_CHARACTERS,
    MAX_TITLE_CHARACTERS,
    PUBLIC_STATUSES,
    advance_draft,
    find_draft,
    find_public_post,
    own_slug,
    read_after_collision,
)
from pipeline.platforms.ghost.site import (
    ADMIN_KEY,
    GhostSite,
    clean_address,
    find_site,
    is_collision,
    post_of,
)
from pipeline.platforms.rules import MEBIBYTE, BucketRule, MediaRule, too_long
from pipeline.platforms.samples import build_samples, sum_counts
from pipeline.plugins import ConfigInvalid, Evidence, PluginError, Problem, Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from config.core.http_client import Client
    from pipeline.engines.base import Bucket
    from pipeline.platforms.payload_types import Adapted, Payload

# docs.ghost.org/admin-api/images/uploading-an-image, read 2026-11-20. Each site sets its own size limit.
_IMAGES_RULE: Final = MediaRule(
    ("image/jpeg", "image/png", "image/gif", "image/webp", "image/svg+xml"), most=50, max_bytes=50 * MEBIBYTE
)
_ARTICLE_RULE: Final = BucketRule(
    text_max=None, needs_title=True, title_max=MAX_TITLE_CHARACTERS, images=_IMAGES_RULE
)


class Ghost(Platform):
    kind = "ghost"
    label = "Ghost"
    summary = "Articles on a Ghost site, and newsletters that it sends to its members."
    evidence = Evidence("documents", "November 2026", "tests/platforms/test_ghost.py")
    buckets = ("blog", "newsletter")
    can_reconcile = True
    can_remove = True
    has_finish = True
    idempotency = "draft_flip"
    metrics_given = ("clicks",)
    # There is no base address, because each account's own site is called.
    api = Api(base_url="", version="v6.0", reviewed_on=date(2026, 11, 20))
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "site",
            "API URL",
            "In Ghost under Settings, Integrations, a custom integration, such as https://blog.example.com.",
            kind="url",
        ),
        Setting(
            "admin_key",
            "Admin API key",
            "Of the same custom integration: two long numbers with a colon between them.",
            kind="password",
            is_secret=True,
        ),
        Setting(
            "newsletter",
            "Newsletter",
            "The slug of the newsletter to send with; without one no newsletter is sent.",
            is_required=False,
            max_length=191,
        ),
        Setting(
            "segment",
            "Members who get the newsletter",
            kind="choice",
            choices=(("all", "All"), ("status:free", "Free members"), ("status:-free", "Paying members")),
            default="all",
            is_required=False,
        ),
        Setting(
            "email_only",
            "Newsletters by email only",
            "They then have no page on the site.",
            kind="flag",
            default=False,
            is_required=False,
        ),
        *ARTICLE_SETTINGS,
    )
    rules: ClassVar[Mapping[Bucket, BucketRule]] = {"blog": _ARTICLE_RULE, "newsletter": _ARTICLE_RULE}

    def clean_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        site = config.get("site")
        return super().clean_config(
            {**config, "site": clean_address(site)} if isinstance(site, str) else config
        )

    def clean_credentials(self, credentials: Mapping[str, Any]) -> dict[str, Any]:
        clean = super().clean_credentials(credentials)
        if not ADMIN_KEY.fullmatch(clean["admin_key"]):
            message = "An Admin API key is two hexadecimal numbers with a colon between them."
            raise ConfigInvalid([Problem("credentials.admin_key", "invalid", message)])
        return clean

    def check_account(self, account: Account, *, http: Client, now: datetime) -> AccountInfo:
        root, site_info = find_site(account, http=http, now=now)
        config = {"admin_root": root}
        major = str(site_info.get("version", "")).partition(".")[0]
        if major.isdecimal():
            # A site doesn't answer requests for a version newer than its own.
            newest = int(account.api_version.removeprefix("v").partition(".")[0] or major)
            config["accept_version"] = f"v{min(int(major), newest)}.0"
        site = GhostSite(root, replace(account, config={**account.config, **config}), http, now)
        newsletters = site.newsletters()
        return AccountInfo(
            external_id=str(site_info.get("url") or root),
            name=str(site_info.get("title") or ""),
            url=str(site_info.get("url") or ""),
            limits={"newsletters": sorted(newsletters)},
            config=config,
            notes=_newsletter_notes(account, newsletters),
        )

    def adapt(self, account: Account, payload: Payload) -> Adapted:
        subject = str(payload.content.get("subject") or "") if payload.bucket == "newsletter" else ""
        return as_html(replace(payload, title=payload.title.strip() or subject), account.config)

    def validate(self, account: Account, post: Adapted) -> tuple[Problem, ...]:
        problems = list(super().validate(account, post))
        problems += empty_article_problems(post, tuple(problems))
        content = post.payload.content
        is_newsletter = post.payload.bucket == "newsletter"
        limits = (
            {"subject": MAX_SUBJECT_CHARACTERS, "preheader": MAX_EXCERPT_CHARACTERS}
            if is_newsletter
            else {"meta_description": MAX_EXCERPT_CHARACTERS}
        )
        for name, limit in limits.items():
            count = len(remove_half_characters(str(content.get(name) or "")))
            if count > limit:
                problems.append(too_long(f"content.{name}", count, limit, "characters"))
        if is_newsletter and not account.config.get("newsletter"):
            message = "This outlet names no newsletter of the site, so nothing could be sent."
            problems.append(Problem(None, "no_newsletter", message))
        return tuple(problems)

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
        root = str(account.config.get("admin_root") or state.get("root") or "")
        if not root:
            root, _ = find_site(account, http=http, now=now)
            return Prepared({**state, "root": root}, is_done=False)
        return advance_draft(GhostSite(root, account, http, now), post, state, key)

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
        site = GhostSite(str(state["root"]), account, http, now)
        if state.get("is_public"):
            # `prepare` found the post public already: an email must not be sent twice.
            return _to_sent(site, read_after_collision(site, state["post"]))
        values: dict[str, Any] = {
            "status": "published",
            "slug": own_slug(post, key),
            "updated_at": state["updated_at"],
        }
        query = {}
        if post.payload.bucket == "newsletter":
            query = {
                "newsletter": str(account.config.get("newsletter", "")),
                "email_segment": str(account.config.get("segment") or "all"),
            }
            values["email_only"] = bool(account.config.get("email_only"))
        response = site.send_once(f"posts/{state['post']}/", values, query)
        if is_collision(response):
            return _to_sent(site, read_after_collision(site, state["post"]))
        answer = post_of(response) if response.status == 200 else None
        if answer is None:
            site.raise_for_response(response, is_commit=True)
        if answer["status"] not in PUBLIC_STATUSES:
            message = "The site kept the post as a draft."
            raise Refused(message, code="kept_as_draft", platform_status=response.status)
        return _to_sent(site, answer)

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
        try:
            root = state.get("root") or account.config.get("admin_root")
            if not root:
                root, _ = find_site(account, http=http, now=now)
            site = GhostSite(str(root), account, http, now)
            if "post" in state:
                ghost_post = site.read_post(state["post"])
            else:
                ghost_post = find_draft(site, key) or find_public_post(site, post, key)
        except PluginError as error:
            return CannotTell(error.message)
        if ghost_post is None:
            return Absent()
        if ghost_post["status"] in PUBLIC_STATUSES:
            return Found(_to_sent(site, ghost_post))
        if ghost_post.get("email"):
            return CannotTell("The post was sent by email and has been turned back into a draft.")
        return Absent()

    def finish(
        self, account: Account, post: Adapted, sent: Sent, *, http: Client, now: datetime
    ) -> Mapping[str, Any] | None:
        """Return the state of a newsletter's email, which Ghost sends after its answer, or `None` for an article.

        Raises `TryLater` while the site is still sending.
        """
        if post.payload.bucket != "newsletter":
            return None
        ghost_post = _site_of(account, sent, http, now).read_post(sent.external_id)
        email = ghost_post.get("email") if ghost_post else None
        if not isinstance(email, dict):
            return {"email_status": "none"}
        if email.get("status") in {"pending", "submitting"}:
            message = "The site is still sending the email."
            raise TryLater(message, code="email_under_way")
        return {
            "email_status": str(email.get("status", "")),
            "email_error": str(email.get("error") or "")[:300],
        }

    def remove(self, account: Account, sent: Sent, *, http: Client, now: datetime) -> None:
        """Make the post a draft again, so that its content isn't lost.

        Raises `Refused` if it was sent by email only.
        """
        site = _site_of(account, sent, http, now)
        ghost_post = site.read_post(sent.external_id)
        if ghost_post is None or ghost_post["status"] == "draft":
            return
        if ghost_post["status"] == "sent":
            message = "It was sent by email only, and an email can't be taken back."
            raise Refused(message, code="cannot_be_taken_back", action="Send a correction.")
        values = {"status": "draft", "updated_at": ghost_post["updated_at"]}
        response = site.send("PUT", f"posts/{ghost_post['id']}/", values, {})
        if response.status != 200:
            site.raise_for_response(response)

    def metrics(
        self, account: Account, sent: Sequence[tuple[Sent, datetime]], *, http: Client, now: datetime
    ) -> tuple[tuple[Sample, ...], ...]:
        return tuple(
            _samples_of(_site_of(account, post, http, now).read_post(post.external_id)) for post, _ in sent
        )


def _newsletter_notes(account: Account, newsletters: set[str]) -> tuple[str, ...]:
    """Return a note if the account names no newsletter, or one that the site doesn't have."""
    newsletter = account.config.get("newsletter")
    known = ", ".join(sorted(newsletters)) or "none"
    if newsletter and newsletter not in newsletters:
        return (f"The site has no active newsletter “{newsletter}”; there is {known}.",)
    if not newsletter:
        return (f"No newsletter is set, so only articles can be published; the site has {known}.",)
    return ()


def _to_sent(site: GhostSite, post: Mapping[str, Any]) -> Sent:
    """Return the post as `Sent`, with the root of the site's API and the state of its email."""
    email = post.get("email")
    details = {"root": site.root, "status": post["status"]}
    if isinstance(email, dict):
        details["email_status"] = str(email.get("status", ""))
    return Sent(external_id=post["id"], url=str(post.get("url") or ""), details=details)


def _site_of(account: Account, sent: Sent, http: Client, now: datetime) -> GhostSite:
    """Return the site that a post was sent to; ask the site for its root if it isn't known."""
    root = sent.details.get("root") or account.config.get("admin_root") or ""
    if not root:
        root, _ = find_site(account, http=http, now=now)
    return GhostSite(str(root), account, http, now)


def _samples_of(post: Mapping[str, Any] | None) -> tuple[Sample, ...]:
    """Return the samples of a post: the clicks of members in its email.

    An opened mail isn't counted as a view, because mail programs open mails automatically.
    """
    counts = post.get("count") if post and isinstance(post.get("email"), dict) else None
    return build_samples({"clicks": sum_counts(counts if isinstance(counts, dict) else {}, "clicks")})


PLUGIN = Ghost()
