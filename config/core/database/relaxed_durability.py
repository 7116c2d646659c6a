"""The marker of statements that SQLite needn't write to the disk at once."""

from typing import Final

MAY_BE_LOST: Final = "/* may be lost */"
"""Put into a statement whose loss in a power cut is harmless, such as a count of requests: it doesn't wait for the disk."""
