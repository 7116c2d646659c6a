"""The mark of the statements that SQLite need not bring to the disk."""

from typing import Final

MAY_BE_LOST: Final = "/* may be lost */"
"""In a statement of its own that nobody needs after a power cut, such as a count of requests: no wait for the disk."""
