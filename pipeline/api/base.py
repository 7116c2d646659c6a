"""Defines the base of the pipeline's views, and the OpenAPI parameters that they share."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.db.models import Value
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

from accounts.api.base import IDEMPOTENCY_KEY, WorkspaceResource
from accounts.ledger import credits as credit_account
from accounts.ledger import months, reports
from accounts.models import CreditBalance
from config.core import ids
from config.core.clock import utc_now
from config.core.database.prepared_queries import Prepared
from config.core.errors import Conflict, NotFound
from config.core.states import Overtaken
from pipeline.models import WorkspaceDefaults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from django.db.models import QuerySet

    from accounts.tenancy import WorkspaceRow

Row = TypeVar("Row", bound="WorkspaceRow")

NO_CONTENT: Final = OpenApiResponse(description="Done; nothing to say.")
POST_PARAMETERS: Final = [IDEMPOTENCY_KEY]
"""The header parameters of every POST."""


def path_id(prefix: str) -> OpenApiParameter:
    """Return the parameter of a public id in the path: 128 bits in base 32, see `config/core/ids.py`."""
    return OpenApiParameter(
        "id",
        {"type": "string", "pattern": f"^{prefix}_[0-7][0-9a-hjkmnp-tv-z]{{25}}$"},
        OpenApiParameter.PATH,
    )


IF_MATCH: Final = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, description="The ETag that was read; 412 where it has changed."
)
ACT_PARAMETERS: Final = [IF_MATCH, *POST_PARAMETERS]
"""The header parameters of a POST on an object that has a version."""

_DEFAULTS: Final[Prepared[WorkspaceDefaults]] = Prepared(
    lambda workspace, test: WorkspaceDefaults.objects.of(workspace).select_related(
        "test_push_source" if test else "push_source"
    )
)


def as_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body's values under the model's names: `persona` is its `persona_id`."""
    settings = dict(values)
    if "persona" in settings:
        settings["persona_id"] = settings.pop("persona")
    return settings


class PipelineResource(WorkspaceResource):
    """A resource of the pipeline, within the reach of the caller's workspace and mode."""

    def rows(self, model: type[Row]) -> QuerySet[Any]:
        """Return the rows of the caller's workspace, live or test."""
        # Value() gives `test = false`; Django's `NOT test` would keep SQLite from using the indexes of the lists.
        own_rows: QuerySet[Any] = model.objects.of(self.caller.workspace).filter(test=Value(self.caller.test))
        return own_rows

    def find(self, rows: QuerySet[Any], prefix: str, public_id: str) -> Any:
        """Return the one of `rows` with that public id. Raises `NotFound` if there is none."""
        key = ids.decode(prefix, public_id)
        row = rows.filter(pk=key).first() if key else None
        if row is None:
            raise NotFound
        return row

    @contextmanager
    def quota_before_conflict(self, price: int) -> Iterator[None]:
        """Replace a `Conflict` (409) by `QuotaExceeded` (402) if the credits don't suffice for `price`.

        The contract has this order of errors. The action reserves the credits last, so that the balance is
        locked as briefly as possible; this reads the balance after a refusal only. Callers who pay nothing get
        the `Conflict`.
        """
        try:
            yield
        except Overtaken:
            # A condition that no longer holds comes before both.
            raise
        except Conflict as conflict:
            workspace, now = self.caller.workspace, utc_now()
            if self.caller.test or workspace.is_unlimited:
                raise
            report = reports.usage(workspace, now)
            if price <= report.available:
                raise
            balance = CreditBalance(
                period_start=months.month_of(now),
                granted=report.limit,
                used=report.used,
                reserved=report.reserved,
                available=report.available,
            )
            raise credit_account.QuotaExceeded(needed=price, balance=balance) from conflict

    def defaults(self) -> WorkspaceDefaults:
        """Return the workspace's defaults, with the source that a push goes to in the caller's mode."""
        (defaults,) = _DEFAULTS.ask(workspace=self.caller.workspace.pk, test=self.caller.test)
        return defaults
