"""Publishes articles on WordPress: first as a draft, which one call then makes public.

Until then the draft is found by its slug, the publication's key. The call gives the article its own slug, so
afterwards it is found by its id or by the key in its last block. A second call changes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar

from pipeline.platforms.article_html import ARTICLE_SETTINGS, as_html, empty_article_problems
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
from pipeline.platforms.payload_types import AdaptationStep, Adapted, Payload
from pipeline.platforms.rules import MEBIBYTE, BucketRule, MediaRule
from pipeline.platforms.samples import build_samples
from pipeline.platforms.wordpress.calls import SWITCH_ON, WordPressSite, clean_address, find_root, read_object
from pipeline.platforms.wordpress.drafts import advance_draft, find_post, is_gone, is_id, read_post
from pipeline.plugins import (
    ConfigInvalid,
    Evidence,
    NeedsReconnect,
    OutcomeUnknown,
    PluginError,
    Problem,
    Refused,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from config.core.http_client import Client
    from pipeline.engines.base import Bucket


class WordPress(Platform):
    kind = "wordpress"
    label = "WordPress"
    summary = "Articles on a WordPress site, with their images, tags and category."
    evidence = Evidence("server", "WordPress 6.1", "tests/platforms/test_real_wordpress.py")
    buckets = ("blog",)
    can_reconcile = True
    can_remove = True
    idempotency = "draft_flip"
    metrics_given = ("comments",)
    # There is no base address, because each account's own site is called.
    api = Api(base_url="", version="wp/v2", reviewed_on=date(2026, 11, 20))
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting("site", "Site address", "Such as https://blog.example.com.", kind="url"),
        Setting("username", "User name", "Of a user with the role Author or Editor.", max_length=100),
        Setting(
            "application_password",
            "Application password",
            "On the site under Users, Profile, Application Passwords. It isn't the password for signing in.",
            kind="password",
            is_secret=True,
        ),
        Setting(
            "status",
            "Status of articles",
            "A draft or an article that waits for review is invisible until it is published on the site.",
            kind="choice",
            choices=(
                ("publish", "Publish it"),
                ("pending", "Wait for review"),
                ("draft", "Keep it as a draft"),
            ),
            default="publish",
            is_required=False,
        ),
        Setting(
            "category",
            "Category",
            "Its name; without one the site's own default.",
            is_required=False,
            max_length=200,
        ),
        *ARTICLE_SETTINGS,
    )
    rules: ClassVar[Mapping[Bucket, BucketRule]] = {
        # WordPress limits neither text nor files (post_content is a LONGTEXT). Its types are those of
        # wp_get_mime_types() in 6.1, read 2026-11-20; each site's PHP sets the size limit of a file.
        "blog": BucketRule(
            text_max=None,
            images=MediaRule(
                ("image/jpeg", "image/png", "image/gif", "image/webp"), most=50, max_bytes=64 * MEBIBYTE
            ),
        )
    }

    def clean_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        site = config.get("site")
        clean = super().clean_config(
            {**config, "site": clean_address(site)} if isinstance(site, str) else config
        )
        if ":" in clean["username"]:
            message = "A user name has no colon."
            raise ConfigInvalid([Problem("config.username", "invalid", message)])
        return clean

    def check_account(self, account: Account, *, http: Client, now: datetime) -> AccountInfo:
        root, index = find_root(account, http=http, now=now)
        site = WordPressSite(root, account, http, now)
        authentication = index.get("authentication")
        has_passwords = isinstance(authentication, dict) and "application-passwords" in authentication
        response = site.get("users/me", {"context": "edit"})
        if response.status == 401 and not has_passwords:
            message = "The site has application passwords switched off."
            raise NeedsReconnect(
                message, code="application_passwords_off", action=SWITCH_ON, platform_status=401
            )
        user = read_object(response)
        if response.status != 200 or not is_id(user.get("id")):
            site.raise_for_response(response)
        capabilities = user.get("capabilities")
        capabilities = capabilities if isinstance(capabilities, dict) else {}
        return AccountInfo(
            external_id=f"{root}#{user['id']}",
            handle=str(user.get("username") or user.get("slug") or account.config.get("username", "")),
            name=str(user.get("name") or ""),
            url=str(index.get("home") or account.config.get("site", "")),
            scopes=tuple(str(role) for role in user.get("roles") or ()),
            config={"rest_root": root},
            notes=_capability_notes(account, capabilities, root),
        )

    def adapt(self, account: Account, payload: Payload) -> Adapted:
        post = as_html(payload, account.config)
        if not payload.content.get("canonical_url"):
            return post
        step = AdaptationStep("canonical_left_out", "WordPress has no field for the canonical address.")
        return replace(post, steps=(*post.steps, step))

    def validate(self, account: Account, post: Adapted) -> tuple[Problem, ...]:
        problems = super().validate(account, post)
        return (*problems, *empty_article_problems(post, problems))

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
        root = str(account.config.get("rest_root") or state.get("root") or "")
        if not root:
            root, _ = find_root(account, http=http, now=now)
            return Prepared({**state, "root": root}, is_done=False)
        return advance_draft(WordPressSite(root, account, http, now), post, state, key)

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
        site = WordPressSite(str(state["root"]), account, http, now)
        wanted_status = str(account.config.get("status") or "publish")
        # Without a slug WordPress makes one of the title, by its own rules for the site's language.
        values = {"status": wanted_status, "slug": str(post.payload.content.get("slug") or "")}
        response = site.post_once(f"posts/{state['post']}", values)
        answer = read_object(response) if response.status == 200 else {}
        if not is_id(answer.get("id")):
            site.raise_for_response(response, is_commit=True)
        status = answer.get("status")
        if not isinstance(status, str) or not status:
            message = "The site's answer doesn't show the article's status."
            raise OutcomeUnknown(message, platform_status=response.status)
        if status == "draft" and wanted_status != "draft":
            message = "The site kept the article as a draft."
            action = "Look for a plugin on the site that holds articles back, then retry."
            raise Refused(message, code="kept_as_draft", action=action, platform_status=response.status)
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
        del post
        try:
            root = state.get("root") or account.config.get("rest_root")
            if not root:
                root, _ = find_root(account, http=http, now=now)
            site = WordPressSite(str(root), account, http, now)
            article = read_post(site, state["post"]) if "post" in state else find_post(site, key)
        except PluginError as error:
            return CannotTell(error.message)
        if article is None:
            return Absent()
        if article.get("status") == "trash":
            return CannotTell("The article is in the site's trash, which doesn't show whether it was public.")
        return Absent() if _is_unpublished_draft(article, account, key) else Found(_to_sent(site, article))

    def remove(self, account: Account, sent: Sent, *, http: Client, now: datetime) -> None:
        site = _site_of(account, sent, http, now)
        response = site.delete(f"posts/{sent.external_id}")
        if read_object(response).get("code") == "rest_trash_not_supported":
            # The site has no trash, so the article is deleted for good.
            response = site.delete(f"posts/{sent.external_id}", {"force": "true"})
        if response.status != 200 and not is_gone(response):
            site.raise_for_response(response)

    def metrics(
        self, account: Account, sent: Sequence[tuple[Sent, datetime]], *, http: Client, now: datetime
    ) -> tuple[tuple[Sample, ...], ...]:
        return tuple(
            build_samples({"comments": _count_comments(_site_of(account, post, http, now), post.external_id)})
            for post, _ in sent
        )


def _capability_notes(account: Account, capabilities: Mapping[str, Any], root: str) -> tuple[str, ...]:
    """Return notes on what the user may not do.

    Raises `NeedsReconnect` if the user may not write articles, or not publish them although the outlet does.
    """
    wanted_status = str(account.config.get("status") or "publish")
    role = "Give the user the role Author or Editor on the site, then reconnect."
    if not capabilities.get("edit_posts"):
        message = "The user may not write articles on this site."
        raise NeedsReconnect(message, code="missing_right", action=role)
    if wanted_status == "publish" and not capabilities.get("publish_posts"):
        message = "The user may write articles on this site, but not publish them."
        action = "Give the user the role Author or Editor, or have articles wait for review."
        raise NeedsReconnect(message, code="missing_right", action=action)
    notes = []
    if not capabilities.get("upload_files"):
        notes.append("The user may not upload files: articles with images will be refused.")
    if account.config.get("category") and not capabilities.get("manage_categories"):
        notes.append("The user may not add categories: the category has to be there already.")
    if not root.startswith("https://"):
        notes.append("The site answers without https: the password is sent in clear.")
    return tuple(notes)


def _is_unpublished_draft(article: Mapping[str, Any], account: Account, key: str) -> bool:
    """Return whether the article is still the draft that the commit would have changed."""
    if article.get("status") != "draft":
        return False
    # The commit also removes the key from the slug, which shows whether it ran if the outlet makes only drafts.
    return account.config.get("status") != "draft" or str(article.get("slug", "")).startswith(key)


def _to_sent(site: WordPressSite, article: Mapping[str, Any]) -> Sent:
    """Return the article as `Sent`, with the root of the site's API."""
    details = {"root": site.root, "status": str(article.get("status", ""))}
    return Sent(external_id=str(article["id"]), url=str(article.get("link") or ""), details=details)


def _site_of(account: Account, sent: Sent, http: Client, now: datetime) -> WordPressSite:
    """Return the site that an article was sent to; ask the site for its root if it isn't known."""
    root = sent.details.get("root") or account.config.get("rest_root") or ""
    if not root:
        root, _ = find_root(account, http=http, now=now)
    return WordPressSite(str(root), account, http, now)


def _count_comments(site: WordPressSite, post_id: str) -> int | None:
    """Return the number of comments, or `None` if the article is gone or can't be read.

    Raises as `raise_for_response` for other failures.
    """
    response = site.get("comments", {"post": post_id, "per_page": 1, "_fields": "id"})
    total = str(response.headers.get("x-wp-total", response.headers.get("X-WP-Total", "")))
    if response.status != 200 or not total.isdecimal():
        if (
            response.status in {401, 403, 404}
            and read_object(response).get("code") == "rest_cannot_read_post"
        ):
            return None
        site.raise_for_response(response)
    # WordPress answers 0 for an article that is gone, too, so 0 has to be checked.
    if total == "0" and read_post(site, int(post_id)) is None:
        return None
    return int(total)


PLUGIN = WordPress()
