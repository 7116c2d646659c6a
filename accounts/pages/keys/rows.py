"""Reads keys for display, with their state and scopes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.db.models import Q
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext_lazy

from accounts.access import tokens
from accounts.models import ApiToken
from config.core.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from django.db.models import QuerySet
    from django.utils.functional import _StrPromise

    from accounts.pages.page_access import Place

SOON: Final = timedelta(days=7)
"""A key that expires within this time has the state `soon`."""
MAX_ENDED_SHOWN: Final = 100
"""The most ended keys that the list shows."""
PRESET_LABELS: Final[Mapping[str, _StrPromise]] = {
    "full": gettext_lazy("Full access"),
    "read-only": gettext_lazy("Read only"),
    "push-only": gettext_lazy("Push only"),
}


@dataclass(frozen=True)
class Key:
    """A key as a row of the list."""

    token: ApiToken
    state: str
    """`live`, `soon` (to expire), `replaced`, `expired` or `revoked`."""
    successor: ApiToken | None
    """The key that replaces this one and isn't revoked, if any."""

    @property
    def shown(self) -> str:
        return f"{self.token.prefix}…{self.token.last_four}"

    @property
    def is_live(self) -> bool:
        return self.state in {"live", "soon", "replaced"}

    @property
    def may_rotate(self) -> bool:
        return self.is_live and self.successor is None

    @property
    def preset(self) -> str:
        """The label of the preset with the key's scopes, or an empty text if no preset has them."""
        scopes = set(self.token.scopes)
        labels = (label for name, label in PRESET_LABELS.items() if scopes == set(tokens.PRESETS[name]))
        return str(next(labels, ""))


def live_keys(place: Place, now: datetime) -> list[Key]:
    """Return the keys that work, newest first."""
    return _to_keys(_rows(place).filter(_live_condition(now)), now)


def ended_keys(place: Place, now: datetime) -> list[Key]:
    """Return up to `MAX_ENDED_SHOWN` keys that no longer work, newest first."""
    return _to_keys(_rows(place).exclude(_live_condition(now))[:MAX_ENDED_SHOWN], now)


def count_ended(place: Place, now: datetime) -> int:
    """Count the keys that no longer work, beyond `MAX_ENDED_SHOWN` too."""
    return ApiToken.objects.of(place.workspace).exclude(_live_condition(now)).count()


def find_key(place: Place, token_id: UUID) -> Key:
    """Return the workspace's key with this id. Raises `Http404` if there is none."""
    token = get_object_or_404(_rows(place), pk=token_id)
    return _to_keys([token], utc_now())[0]


def _rows(place: Place) -> QuerySet[ApiToken]:
    return (
        ApiToken.objects.of(place.workspace)
        .select_related("created_by", "workspace", "rotated_from")
        .defer("workspace__model_key")
        .order_by("-created_at", "-id")
    )


def _live_condition(now: datetime) -> Q:
    return Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=now))


def _to_keys(rows: Iterable[ApiToken], now: datetime) -> list[Key]:
    """Return the tokens of one workspace with their states and successors, read in one statement."""
    listed_tokens = list(rows)
    if not listed_tokens:
        return []
    live_rows = ApiToken.objects.of(listed_tokens[0].workspace_id).filter(
        rotated_from__in=[token.pk for token in listed_tokens], revoked_at=None
    )
    successors = {row.rotated_from_id: row for row in live_rows}
    return [
        Key(token, _state(token, successors.get(token.pk), now), successors.get(token.pk))
        for token in listed_tokens
    ]


def _state(token: ApiToken, successor: ApiToken | None, now: datetime) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if token.expires_at is not None and token.expires_at <= now:
        return "expired"
    if successor is not None:
        return "replaced"
    return "soon" if token.expires_at is not None and token.expires_at - now <= SOON else "live"
