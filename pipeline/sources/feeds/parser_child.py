"""The helper process that reads feeds: it starts once, and reads each feed in a fork of its own under hard limits.

It is run by its path, isolated from the environment, and imports nothing of the project that needs more than Python.
Parsing hostile feeds can take minutes and gigabytes (400 kB of `<!--` cost feedparser 24 s), which only a process can
be stopped from; a fork costs milliseconds where a start of Python with its libraries costs a tenth of a second.

A question is two lengths (4 bytes each, big-endian), a JSON object `{"url", "content_type"}` and the document. The
answer is a length and lines of JSON: the feed without its entries, then one line for each entry.
"""

from __future__ import annotations

import json
import os
import resource
import select
import struct
import sys
from typing import Final

# A feed of 5 MiB with 500 articles costs about 2 s, one with 20,000 bare entries about 5 s.
CPU_SECONDS: Final = 8
# The same feeds take about 50 MB.
MEMORY_BYTES: Final = 384 * 1024 * 1024
# A process that nobody asks any more ends; whoever asks next starts another one.
IDLE_SECONDS: Final = 60
LENGTHS: Final = struct.Struct(">II")
LENGTH: Final = struct.Struct(">I")


def answer_of(document: bytes, *, url: str, content_type: str) -> bytes:
    """The answer to one question, whatever the document holds."""
    from pipeline.sources.feeds.parse import FeedUnreadable, read_document  # noqa: PLC0415  needs the path from main()

    try:
        feed = read_document(document, url=url, content_type=content_type)
    except FeedUnreadable as error:
        return _lines({"problem": error.problem, "links": error.links})
    except (MemoryError, RecursionError):
        return _lines({"problem": "too_complex"})
    except Exception as error:  # noqa: BLE001  feedparser fails in many ways, and each means the same to the parent
        return _lines({"problem": "broken", "error": type(error).__name__})
    entries = feed.pop("entries")
    return _lines(feed, *entries)


def _lines(*records: object) -> bytes:
    return b"\n".join(
        json.dumps(record, ensure_ascii=False).encode("utf-8", errors="replace") for record in records
    )


def limit() -> None:
    limits = (
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CORE, 0),
    )
    for kind, most in limits:
        try:
            resource.setrlimit(kind, (most, most + 1 if kind == resource.RLIMIT_CPU else most))
        except (ValueError, OSError):
            # Some systems don't know RLIMIT_AS, or set a lower one already; the parent's clock holds anyway.
            continue


def _in_fork(document: bytes, question: dict[str, str]) -> bytes:
    """The answer of a process that reads this document alone; it may die of it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        limit()
        with os.fdopen(writing, "wb") as out:
            out.write(answer_of(document, url=question["url"], content_type=question["content_type"]))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as given:
        answer = given.read()
    _, status = os.waitpid(child, 0)
    return answer if status == 0 else _lines({"problem": "too_complex"})


def _receive(count: int) -> bytes | None:
    pieces = []
    while count:
        piece = os.read(0, min(count, 1 << 20))
        if not piece:
            return None
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def serve() -> None:
    """Answer questions until nobody asks."""
    while select.select([0], [], [], IDLE_SECONDS)[0]:
        head = _receive(LENGTHS.size)
        if head is None:
            return
        question_length, document_length = LENGTHS.unpack(head)
        question = _receive(question_length)
        document = _receive(document_length)
        if question is None or document is None:
            return
        answer = _in_fork(document, json.loads(question))
        with os.fdopen(os.dup(1), "wb") as out:
            out.write(LENGTH.pack(len(answer)) + answer)
        del answer, document


def main(project_folder: str, library_folder: str) -> None:
    # It runs without `site`, which saves its start-up time, so it is told where things are.
    sys.path += [project_folder, library_folder]
    import feedparser  # type: ignore[import-untyped, unused-ignore]  # noqa: F401, PLC0415  once, for all forks

    import pipeline.sources.feeds.feedparser_bounds  # noqa: PLC0415
    import pipeline.sources.feeds.parse  # noqa: F401, PLC0415

    serve()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
