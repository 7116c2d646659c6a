"""Who may do what in a workspace's pages: a role allows acts, and nothing else does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext_lazy as _

from accounts.models import Membership

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.utils.functional import _StrPromise

_Role = Membership.Role
_EVERYBODY: Final = frozenset({_Role.OWNER, _Role.EDITOR, _Role.VIEWER})
_EDITORS: Final = frozenset({_Role.OWNER, _Role.EDITOR})
_OWNERS: Final = frozenset({_Role.OWNER})

ACTS: Final[Mapping[str, frozenset[_Role]]] = {
    # To see what the workspace holds and how it is doing.
    "look": _EVERYBODY,
    # To change what is made and where it goes: content, sources, personas, outlets.
    "edit": _EDITORS,
    # Keys, webhooks, people, money, and the workspace itself.
    "manage": _OWNERS,
    # Whatever is one's own: to leave, to choose one's notices.
    "be_here": _EVERYBODY,
}

DESCRIPTIONS: Final[Mapping[_Role, tuple[_StrPromise, _StrPromise]]] = {
    _Role.OWNER: (_("Owner"), _("Full access, including keys, webhooks and members.")),
    _Role.EDITOR: (_("Editor"), _("Content: sources, personas, items, outlets, publishing.")),
    _Role.VIEWER: (_("Viewer"), _("Read only, without keys and webhooks.")),
}
"""Each role for people: its name and what it allows."""


def may(role: str, act: str) -> bool:
    """Whether the role allows the act. Raises `KeyError` for an act that isn't in the table: a fault of ours."""
    return role in ACTS[act]
