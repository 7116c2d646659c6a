"""Collects the models of workspaces, users and tokens, with credits, notices, audit log and request guards."""

from accounts.models.api_token import ApiToken
from accounts.models.audit import AuditEntry
from accounts.models.ledger import CreditBalance, LedgerEntry
from accounts.models.notice import (
    Notice,
    NoticeChannel,
    NoticeChoice,
    NoticeDigest,
    NoticeKind,
    NoticeMessage,
    NoticeMessageStatus,
)
from accounts.models.request_guards import GuardCount, IdempotencyKey, RateBucket
from accounts.models.user import User
from accounts.models.workspace import Invitation, Membership, Plan, WhitelistRequest, Workspace

__all__ = [
    "ApiToken",
    "AuditEntry",
    "CreditBalance",
    "GuardCount",
    "IdempotencyKey",
    "Invitation",
    "LedgerEntry",
    "Membership",
    "Notice",
    "NoticeChannel",
    "NoticeChoice",
    "NoticeDigest",
    "NoticeKind",
    "NoticeMessage",
    "NoticeMessageStatus",
    "Plan",
    "RateBucket",
    "User",
    "WhitelistRequest",
    "Workspace",
]
