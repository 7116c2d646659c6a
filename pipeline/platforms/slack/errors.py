"""Lists the meanings of the error answers of Slack's Web API and webhooks, and raises them.

They were read in docs.slack.dev and python-slack-sdk 3.43.0, on 2026-11-20.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NoReturn

from pipeline.platforms.failures import Failure, raise_from_table
from pipeline.platforms.http_calls import json_object, retry_after
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, Refused, TryLater

if TYPE_CHECKING:
    from datetime import datetime

    from config.core.http_client import Response

SLACK_OWN_ERRORS: Final = frozenset(
    {"fatal_error", "internal_error", "request_timeout", "service_unavailable"}
)
"""Slack's internal errors, which don't tell whether the message was taken."""

# The first row that matches counts.
ERRORS: Final = (
    Failure(TryLater, "rate_limited", "Slack asks to wait.", status=429),
    Failure(
        TryLater,
        "rate_limited",
        "Slack asks to wait.",
        codes=("ratelimited", "rate_limited", "message_limit_exceeded"),
    ),
    Failure(
        NeedsReconnect,
        "token_refused",
        "Slack no longer takes this token or webhook.",
        codes=(
            "account_inactive",
            "invalid_auth",
            "invalid_token",
            "no_active_hooks",
            "no_service",
            "no_service_id",
            "no_team",
            "not_authed",
            "org_login_required",
            "team_disabled",
            "token_expired",
            "token_revoked",
        ),
    ),
    Failure(
        NeedsReconnect,
        "scope_missing",
        "The Slack app lacks a scope.",
        "Give the app the scope chat:write, install it again, and reconnect the outlet.",
        codes=("missing_scope", "no_permission", "not_allowed_token_type"),
    ),
    Failure(
        NeedsReconnect,
        "not_in_channel",
        "The app isn't in the channel.",
        "Invite the app to the channel, then retry.",
        codes=("not_in_channel",),
    ),
    Failure(
        NeedsReconnect,
        "channel_not_found",
        "Slack can't find the channel.",
        "Correct the channel in the outlet's settings, or invite the app to it.",
        codes=("channel_not_found", "user_not_found"),
    ),
    Failure(
        NeedsReconnect,
        "channel_archived",
        "The channel is archived.",
        "Open the channel again, or take another one.",
        codes=("channel_is_archived", "is_archived"),
    ),
    Failure(
        NeedsReconnect,
        "no_right_to_post",
        "An administrator of the Slack workspace has restricted posting there.",
        "Ask for the right to post in this channel, or take another one.",
        codes=(
            "action_prohibited",
            "ekm_access_denied",
            "posting_to_general_channel_denied",
            "restricted_action",
        ),
    ),
    Failure(
        Refused,
        "too_long",
        "The text is too long for Slack.",
        codes=("msg_too_long", "msg_blocks_too_long"),
        field="body",
    ),
    Failure(Refused, "empty", "Slack considers the message empty.", codes=("no_text",), field="body"),
    Failure(
        Refused,
        "invalid",
        "Slack can't use the message.",
        "Where it has pictures: their addresses have to be reachable from the internet.",
        codes=("invalid_blocks", "invalid_blocks_format", "invalid_payload", "too_many_attachments"),
    ),
    Failure(NeedsReconnect, "token_refused", "Slack no longer takes this token or webhook.", status=404),
    Failure(NeedsReconnect, "token_refused", "Slack no longer takes this token or webhook.", status=410),
)
SERVICE_NAME = "Slack"
_ERROR_CODE = re.compile(r"[a-z_]{2,60}")


def _error_code_of(response: Response) -> str:
    """Return the error that Slack names, or an empty string if it names none.

    The whole text of a webhook's answer is its error, which only counts with a status of 400 or more.
    """
    answer = json_object(response.body)
    code: object = ""
    if answer is not None:
        code = answer.get("error") if answer.get("ok") is False else ""
    elif response.status >= 400:
        code = response.body[:100].decode("ascii", "replace").strip()
    return code if isinstance(code, str) and _ERROR_CODE.fullmatch(code) else ""


def raise_for_response(response: Response, now: datetime, *, is_commit: bool) -> NoReturn:
    """Raise the plug-in error for a failed response.

    Slack's internal errors are `OutcomeUnknown` if `is_commit`, or else `TryLater`. An error that the table
    doesn't have is `Refused`.
    """
    code = _error_code_of(response)
    if code in SLACK_OWN_ERRORS:
        message = f"Slack had an error of its own: {code}."
        kind = OutcomeUnknown if is_commit else TryLater
        raise kind(message, platform_status=response.status, platform_message=code)
    is_known = any(row.meets(response.status, code, code) for row in ERRORS)
    if code and not is_known and response.status < 500:
        message = f"Slack refused it: {code}."
        raise Refused(message, platform_status=response.status, platform_message=code)
    after = retry_after(response.headers, now=now)
    raise_from_table(
        ERRORS,
        response,
        service=SERVICE_NAME,
        code=code,
        platform_message=code,
        now=now,
        is_commit=is_commit,
        after=after,
    )
