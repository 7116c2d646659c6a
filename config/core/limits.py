"""The limits that every app promises or enforces, each with its unit and its reason."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

# --- Input -----------------------------------------------------------------------------------------------------------

BODY_BYTES: Final = 1024 * 1024
"""Bytes of a request body. Ample for everything but raw content."""
RAW_BODY_BYTES: Final = 5 * 1024 * 1024
"""Bytes of a `POST /raw` body: a long transcript is about 1 MB, a batch is several of them."""
REFUSED_BODY_READ_BYTES: Final = 8 * 1024 * 1024
"""Bytes of a too large body that are still read, so that a proxy passes our answer on; a longer one isn't read."""
JSON_DEPTH: Final = 32
"""Levels of nesting. Deeper JSON has no meaning here and costs a parser its stack."""
URL_CHARACTERS: Final = 2048
"""Characters of an address; browsers and servers cut off longer ones."""
NAME_CHARACTERS: Final = 120
"""Characters of the name of a source, a token or a workspace."""
UNKNOWN_NAMES_TOLD: Final = 20
"""The most unknown fields or parameters that one answer names."""
PAGE_ROWS: Final = 100
"""The most rows of a page."""
PAGE_ROWS_DEFAULT: Final = 25
"""Rows of a page if the request doesn't say."""
REQUEST_ID_CHARACTERS: Final = 64
"""The most characters of an X-Request-Id; a longer one is replaced."""

# --- Connections -----------------------------------------------------------------------------------------------------

HEAD_SECONDS: Final = 10
"""Seconds in which the head of a request must arrive, counted from the connection or from its first byte."""
HEAD_BYTES: Final = 64 * 1024
"""Bytes of a request's head; browsers and proxies send up to about 16 KiB."""
SLOWEST_BYTES_PER_SECOND: Final = 1024
"""Bytes per second at which a body must arrive and an answer be read, over every `PACE_SECONDS`: any line has more."""
PACE_SECONDS: Final = 30
"""Seconds over which that pace is measured; a lost signal in a tunnel or lift is shorter."""
BODY_SECONDS: Final = 3600
"""Seconds in which a body must arrive, and an answer be read: 200 MiB at half a megabit a second."""
BODY_MEMORY_BYTES: Final = 256 * 1024
"""Bytes of a body, and of an answer that waits to be read, that are kept in memory; the rest is in a file."""
BODIES_KEPT_BYTES: Final = 1024 * 1024 * 1024
"""Bytes of bodies and answers that one web process keeps in files at once: five of the largest uploads."""
ANSWER_AHEAD_BYTES: Final = 64 * 1024 * 1024
"""Bytes of a streamed answer that are buffered for a slow client before the stream waits."""
CONNECTIONS: Final = 400
"""Connections that one web process holds; beyond it the slowest is closed. With their files: fewer than 1,024."""
CONNECTIONS_PER_ADDRESS: Final = 100
"""Connections of one address to one web process: a browser opens six, an office has one address."""
PARTING_SECONDS: Final = 2
"""Seconds in which the client can close after the last answer, so that the answer isn't cut off."""

# --- Keeping ---------------------------------------------------------------------------------------------------------

MEDIA_LEFT_KEPT: Final = timedelta(days=7)
"""How long a media file that no served item names is kept: a waiting run may still need it."""
MEDIA_TRASH_KEPT: Final = timedelta(days=7)
"""How long a file that the sweep removed stays in the trash before it is deleted."""
MEDIA_SWEEP_PERCENT: Final = 10
"""Percent of the media files that one round of the sweep may remove; for more it waits for the operator."""
MEDIA_SWEEP_FILES: Final = 50
"""Files that one round of the sweep may remove however few there are."""
MEDIA_PARTS_KEPT: Final = timedelta(hours=24)
"""How long the file of an interrupted write is kept."""
