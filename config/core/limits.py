"""The numbers that every app promises or refuses, each with its unit and its reason."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

# --- Input -----------------------------------------------------------------------------------------------------------

BODY_BYTES: Final = 1024 * 1024
"""Bytes of a request body. Ample for everything but raw content."""
RAW_BODY_BYTES: Final = 5 * 1024 * 1024
"""Bytes of a `POST /raw` body: a long transcript is about 1 MB, a batch is several of them."""
REFUSED_BODY_READ_BYTES: Final = 8 * 1024 * 1024
"""Bytes of a body that is too large and yet read, so that a proxy passes our answer on; a longer one isn't."""
JSON_DEPTH: Final = 32
"""Levels of nesting. Deeper JSON has no meaning here and costs a parser its stack."""
URL_CHARACTERS: Final = 2048
"""Characters of an address; browsers and servers cut off longer ones."""
NAME_CHARACTERS: Final = 120
"""Characters of the name of a source, a token or a workspace."""
UNKNOWN_NAMES_TOLD: Final = 20
"""Unknown fields or parameters that one answer names."""
PAGE_ROWS: Final = 100
"""Rows of a page, at most."""
PAGE_ROWS_DEFAULT: Final = 25
"""Rows of a page where the request doesn't say."""
REQUEST_ID_CHARACTERS: Final = 64
"""Characters of an X-Request-Id that is kept; a longer one is replaced."""

# --- Connections -----------------------------------------------------------------------------------------------------

HEAD_SECONDS: Final = 10
"""Seconds by the clock in which the head of a request must be there, from the connection, or from its first byte on."""
HEAD_BYTES: Final = 64 * 1024
"""Bytes of a request's head; browsers and proxies send up to about 16 KiB."""
SLOWEST_BYTES_PER_SECOND: Final = 1024
"""Bytes a second at which a body must come and an answer be taken, over every `PACE_SECONDS`: any line has more."""
PACE_SECONDS: Final = 30
"""Seconds over which that pace is measured; a tunnel or a lift is shorter."""
BODY_SECONDS: Final = 3600
"""Seconds in which a body must be there, and an answer be taken: 200 MiB at half a megabit a second."""
BODY_MEMORY_BYTES: Final = 256 * 1024
"""Bytes of a body, and of an answer that waits to be taken, that are kept in memory; the rest is in a file."""
BODIES_KEPT_BYTES: Final = 1024 * 1024 * 1024
"""Bytes of bodies and answers that one web process keeps in files at once: five of the largest uploads."""
ANSWER_AHEAD_BYTES: Final = 64 * 1024 * 1024
"""Bytes of an answer in pieces that are kept for a client that is slower than we are, before its making waits."""
CONNECTIONS: Final = 400
"""Connections that one web process holds; beyond it the slowest goes. With their files they are fewer than 1,024."""
CONNECTIONS_PER_ADDRESS: Final = 100
"""Connections of one address to one web process: a browser opens six, an office has one address."""
PARTING_SECONDS: Final = 2
"""Seconds in which the client can close after the last answer, so that the answer isn't torn off."""

# --- Keeping ---------------------------------------------------------------------------------------------------------

MEDIA_LEFT_KEPT: Final = timedelta(days=7)
"""How long a file of media that no served item names stays: a run that waits may still need it."""
MEDIA_TRASH_KEPT: Final = timedelta(days=7)
"""How long a file that the sweep took away rests in the trash before it is deleted."""
MEDIA_SWEEP_PERCENT: Final = 10
"""Percent of the media's files that one round of the sweep may take; for more it waits for the operator."""
MEDIA_SWEEP_FILES: Final = 50
"""Files that one round of the sweep may take however few there are."""
MEDIA_PARTS_KEPT: Final = timedelta(hours=24)
"""How long the file of a write that was broken off stays."""
