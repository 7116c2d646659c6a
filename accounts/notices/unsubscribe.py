"""The way out that stands in a mail: one kind of notice is switched off for one person, without a log-in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.conf import settings
from django.core import signing

from accounts.models import Workspace
from accounts.notices.choices import choice_of, choose
from accounts.notices.kinds import KINDS, NOW, OFF

if TYPE_CHECKING:
    from accounts.notices.choices import Choice

_SALT: Final = "accounts.notices.off"


@dataclass(frozen=True)
class Way:
    """Whose notices of which kind the address is about; it holds as long as they are of the workspace."""

    workspace: Workspace
    choice: Choice
    kind: str

    @property
    def is_off(self) -> bool:
        return self.choice.when(self.kind) == OFF


def address_to_leave(workspace_id: UUID, user_id: UUID, kind: str) -> str:
    token = signing.dumps([workspace_id.hex, user_id.hex, kind], salt=_SALT)
    return f"{settings.PUBLIC_URL}/notices/off/{token}"


def way_of(token: str) -> Way | None:
    """None for what nobody signed, and where the person has left, or the workspace is gone."""
    try:
        workspace_id, user_id, kind = signing.loads(token, salt=_SALT)
    except signing.BadSignature:
        return None
    workspace = Workspace.everywhere.filter(pk=UUID(workspace_id)).first()
    choice = choice_of(UUID(workspace_id), UUID(user_id))
    if workspace is None or choice is None or kind not in KINDS:
        return None
    return Way(workspace, choice, kind)


def switch(way: Way, *, is_on: bool) -> None:
    """What else the person chose stays as it is; doing it again changes nothing."""
    if way.is_off is not is_on:
        return
    choice = way.choice
    choose(
        way.workspace,
        choice.user,
        {**choice.kinds, way.kind: NOW if is_on else OFF},
        by_mail=choice.by_mail,
        slack_url=choice.slack_url,
        telegram_token=choice.telegram_token,
        telegram_chat=choice.telegram_chat,
    )
