"""Django's backend for SQLite, whose writers take turns."""

from typing import Final

MAY_BE_LOST: Final = "/* may be lost */"
"""In a statement of its own that nobody needs after a power cut, such as a count of requests: no wait for the disk."""
