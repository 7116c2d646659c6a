"""Who is calling, and what they may use."""

from accounts.models.api_token import ApiToken
from accounts.models.audit import AuditEntry
from accounts.models.guard_count import GuardCount
from accounts.models.idempotency import IdempotencyKey
from accounts.models.invitation import Invitation
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
from accounts.models.plan import Plan
from accounts.models.rate_bucket import RateBucket
from accounts.models.user import User
from accounts.models.whitelist_request import WhitelistRequest
from accounts.models.workspace import Membership, Workspace

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
