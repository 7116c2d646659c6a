"""Databases from before the migrations were made one for each app: brought over whole, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db.migrations.loader import MigrationLoader

if TYPE_CHECKING:
    from collections.abc import Collection

LAST_UNSQUASHED: Final = "4431311"
"""The last commit with every single migration."""


def replaced() -> dict[tuple[str, str], frozenset[tuple[str, str]]]:
    """Of each initial migration the ones that it replaces."""
    disk = MigrationLoader(None).disk_migrations
    return {key: frozenset(one.replaces) for key, one in disk.items() if one.replaces}


def why_not(applied: Collection[tuple[str, str]]) -> str | None:
    """The sentence for a database that had only some of an app's former migrations; None where it can be migrated.

    Django would pass such an app by without a word, and the tables that it lacks would be missed much later.
    """
    had = set(applied)
    for initial, former in replaced().items():
        missing = sorted(former - had)
        if initial not in had and had & former and missing:
            names = ", ".join(f"{app}.{name}" for app, name in missing[:3])
            return (
                f"It was made by an unreleased version and lacks {len(missing)} of its migrations ({names}). "
                f"Check out commit {LAST_UNSQUASHED}, run its manage.py migrate, then come back to this version "
                "and run manage.py migrate. Nothing was changed."
            )
    return None
