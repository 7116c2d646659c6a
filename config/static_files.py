"""Static files under names that change with their content, in scripts' own imports too."""

from __future__ import annotations

from typing import ClassVar

from whitenoise.storage import CompressedManifestStaticFilesStorage


class StaticFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # it ships no types
    """A script that is made of several is the same release in all its parts, however long a browser keeps one of them.

    The scripts of packages are left as they are: some name files that they don't bring.
    """

    patterns: ClassVar = (
        *CompressedManifestStaticFilesStorage.patterns,
        ("js/*.js", ((r"""(?P<matched>from "(?P<url>\./[^"]+)";)""", 'from "%(url)s";'),)),
    )
