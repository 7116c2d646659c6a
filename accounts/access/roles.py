"""Defines which acts each role allows in a workspace's pages; nothing else decides that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext_lazy as _

from accounts.models import Membership

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.utils.functional import _StrPromise

_Role = Membership.Role
_ALL_ROLES: Final = frozenset({_Role.OWNER, _Role.EDITOR, _Role.VIEWER})
_EDITORS: Final = frozenset({_Role.OWNER, _Role.EDITOR})
_OWNERS: Final = frozenset({_Role.OWNER})

ACTS: Final[Mapping[str, frozenset[_Role]]] = {
    # Read the workspace's content and state.
    "look": _ALL_ROLES,
    # Change what is generated and where it goes: content, sources, personas, outlets.
    "edit": _EDITORS,
    # Change keys, webhooks, members, credits, and the workspace itself.
    "manage": _OWNERS,
    # Change one's own membership: leave, choose notifications.
    "be_here": _ALL_ROLES,
}

DESCRIPTIONS: Final[Mapping[_Role, tuple[_StrPromise, _StrPromise]]] = {
    _Role.OWNER: (_("Owner"), _("Full access, including keys, webhooks and members.")),
    _Role.EDITOR: (_("Editor"), _("Content: sources, personas, items, outlets, publishing.")),
    _Role.VIEWER: (_("Viewer"), _("Read only, without keys and webhooks.")),
}
"""Each role's name and what it allows, as pages show them."""


def may(role: str, act: str) -> bool:
    """Return whether the role allows the act. Raises `KeyError` if `ACTS` doesn't have the act."""
    return role in ACTS[act]
