"""Keeps workspaces apart: base classes of rows and of query sets that need their workspace named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, TypeVar

from django.db import models

from config.core.ids import uuid7

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from accounts.models import Workspace

Row = TypeVar("Row", bound=models.Model)


class WorkspaceNotBound(RuntimeError):
    """Raised when a query doesn't name its workspace: a programming error, never a client's."""


class WorkspaceQuerySet(models.QuerySet[Row]):
    """Raises `WorkspaceNotBound` when it is evaluated before `of()` has named the workspace.

    Every chained query set stays bound. A bound one stays so in a union with an unbound one too; subqueries and
    `bulk_create` aren't checked.
    """

    _is_bound: bool = False

    def of(self, workspace: Workspace | UUID) -> Self:
        """Return the rows of one workspace, which may be evaluated; takes the workspace or its id."""
        bound = self.filter(workspace_id=getattr(workspace, "pk", workspace))
        bound._is_bound = True  # noqa: SLF001  another instance of this class
        return bound

    def _clone(self) -> Self:
        """Copy `_is_bound` too: every chained call clones."""
        clone: Self = super()._clone()  # type: ignore[misc]
        clone._is_bound = self._is_bound
        return clone

    def _refuse_unless_bound(self) -> None:
        if not self._is_bound:
            message = f"Name the workspace first: {self.model.__name__}.objects.of(workspace)"
            raise WorkspaceNotBound(message)

    def _fetch_all(self) -> None:
        self._refuse_unless_bound()
        super()._fetch_all()

    def iterator(self, chunk_size: int | None = None) -> Iterator[Row]:
        self._refuse_unless_bound()
        return super().iterator(chunk_size)

    def count(self) -> int:
        self._refuse_unless_bound()
        return super().count()

    def exists(self) -> bool:
        self._refuse_unless_bound()
        return super().exists()

    def aggregate(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        self._refuse_unless_bound()
        return super().aggregate(*args, **kwargs)

    def update(self, **kwargs: Any) -> int:
        self._refuse_unless_bound()
        return super().update(**kwargs)

    def delete(self) -> tuple[int, dict[str, int]]:
        self._refuse_unless_bound()
        return super().delete()

    def create(self, **kwargs: Any) -> NoReturn:
        del kwargs
        message = "Create rows through `everywhere`, with their workspace named."
        raise WorkspaceNotBound(message)


class WorkspaceRow(models.Model):
    """Base of models whose rows belong to one workspace.

    `everywhere` comes first because Django's admin and `dumpdata` use a model's first manager; `objects`
    refuses to answer without a workspace.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # Every read index begins with the workspace already; one more would only slow down each insert.
    workspace = models.ForeignKey(
        "accounts.Workspace", on_delete=models.CASCADE, related_name="+", db_index=False
    )

    everywhere: ClassVar[models.Manager[Any]] = models.Manager()
    objects = WorkspaceQuerySet[Any].as_manager()

    class Meta:
        abstract = True
        base_manager_name = "everywhere"
