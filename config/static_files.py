"""Serves static files under names that change with their content, also in the imports of scripts."""

from __future__ import annotations

from typing import ClassVar

from whitenoise.storage import CompressedManifestStaticFilesStorage


class StaticFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # it ships no types
    """Rewrites the imports of our scripts, so that all parts are of one release, whatever browsers cache.

    The scripts of packages are left as they are, because some name files that they don't ship.
    """

    # As in `import { open } from "./dialog.js";`.
    patterns: ClassVar = (
        *CompressedManifestStaticFilesStorage.patterns,
        ("js/*.js", ((r"""(?P<matched>from "(?P<url>\./[^"]+)";)""", 'from "%(url)s";'),)),
    )
