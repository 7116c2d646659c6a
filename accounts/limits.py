"""Sets the limits of workspaces, users and their keys, each with its unit and its reason."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

# --- Input -----------------------------------------------------------------------------------------------------------

IDEMPOTENCY_KEY_CHARACTERS: Final = 255
"""Characters of an Idempotency-Key."""

# --- Rates -----------------------------------------------------------------------------------------------------------

RATE_BURST: Final = 120
"""Requests at once, per workspace."""
RATE_PER_MINUTE: Final = 60
"""Requests a minute that a workspace gets back."""
BAD_TOKENS: Final = "20/m"
"""Bad tokens a minute from one IPv4 address or IPv6 /64 network before it has to wait."""
TYPED_KEPT_BYTES: Final = 64 * 1024
"""Bytes of a form that was sent after its session had ended and is kept until the log-in: some 9,000 words."""
TYPED_KEPT_FOR: Final = timedelta(hours=1)
"""How long such a form is kept; the three limits below count within this time too."""
TYPED_KEPT_OF_PERSON: Final = 20
"""Such forms from browsers in which one person was logged in."""
TYPED_KEPT_OF_ADDRESS: Final = 60
"""Such forms from one address, which an office shares."""
TYPED_KEPT_IN_SUM_BYTES: Final = 16 * 1024 * 1024
"""Bytes of all such forms together."""
STRANGERS_SESSION_KEPT: Final = timedelta(hours=1)
"""How long a session lasts in which nobody is logged in: the codes that we mail work for 15 minutes."""
STRANGERS_SESSION_BYTES: Final = 8 * 1024
"""Bytes of such a session, without a form that is kept."""
STRANGERS_SESSIONS_OF_ADDRESS: Final = 200
"""Such sessions from one address within an hour."""
STRANGERS_SESSIONS: Final = 20_000
"""Such sessions in all within an hour; each has about a kilobyte."""
SIGN_UPS: Final = 500
"""Sign-ups in all within an hour, without those by invitation."""
UNVERIFIED_KEPT: Final = timedelta(days=7)
"""How long an account is kept whose address nobody has proven, and which nobody uses."""

# --- Keeping ---------------------------------------------------------------------------------------------------------

IDEMPOTENCY_KEPT: Final = timedelta(hours=48)
"""How long an answer is replayed."""
TOKEN_OVERLAP_DEFAULT: Final = timedelta(hours=24)
"""How long a rotated token or secret keeps working by default."""
TOKEN_OVERLAP_MOST: Final = timedelta(days=7)
"""The longest time for which a rotated token or secret keeps working."""
TOKEN_USE_NOTED_EVERY: Final = timedelta(minutes=1)
"""How often the use of a token is written down: most requests write nothing."""
TOKEN_UNDO: Final = timedelta(seconds=30)
"""How long the user who revoked a key can undo that."""
KEY_REQUESTS_KEPT: Final = 50
"""Requests of one key that its page shows."""
KEY_REQUESTS_KEPT_FOR: Final = timedelta(days=1)
"""How long a key's page shows a request."""

# --- People ----------------------------------------------------------------------------------------------------------

INVITATIONS_PENDING: Final = 50
"""Invitations of one workspace that may wait for an answer."""
INVITATION_MAILS_PER_DAY: Final = 100
"""Mails with invitations that one workspace may send in 24 hours, second ones included."""
INVITATION_KEPT: Final = timedelta(days=7)
"""How long the link of an invitation works."""
INVITATION_RESENT_AFTER: Final = timedelta(minutes=1)
"""How long an invitation must have been on its way before it is sent again."""
MEMBER_RESTORED_WITHIN: Final = timedelta(minutes=15)
"""How long the removal of a member can be undone with one click."""
WORKSPACE_DELETED_AFTER: Final = timedelta(days=7)
"""How long an owner can undo the deletion of a workspace, which is paused meanwhile."""
APPROVAL_SHOWN: Final = timedelta(days=7)
"""How long Home says that an operator approved the workspace's access."""
WORKSPACE_EXPORTED_EVERY: Final = timedelta(minutes=1)
"""How often a workspace's export may be begun: each reads all that it holds."""

# --- Work ------------------------------------------------------------------------------------------------------------

NOTICES_AT_ONCE_MOST: Final = 10
"""Notices of one kind to one person within an hour; further ones wait for the daily digest."""
NOTICE_RETRIES: Final = (
    timedelta(minutes=1),
    timedelta(minutes=10),
    timedelta(hours=1),
    timedelta(hours=6),
)
"""Waits before the further tries of a notice that could not be handed over."""
NOTICES_KEPT: Final = timedelta(days=90)
"""How long notices, and what became of them, are kept."""
DIGEST_HOUR: Final = 8
"""Hour of the day, in the workspace's time zone, at which digests are sent."""
DIGEST_LINES: Final = 50
"""Lines of one digest; it says how many more there are."""
