"""Runs the helper process that parses feeds: started once, it parses each feed in a fork with hard limits.

It is run by its path, isolated from the environment, and imports nothing of the project that needs more than
Python and feedparser. Parsing a hostile feed can take minutes and gigabytes (400 kB of `<!--` cost feedparser
24 s), and only a process can be stopped at that; a fork costs milliseconds, while a start of Python with its
libraries costs a tenth of a second.

A question is two lengths (4 bytes each, big-endian), a JSON object `{"url", "content_type"}` and the
document. The answer is a length (4 bytes) and lines of JSON: the feed without its entries, then one line for
each entry; or one line with a `problem`.
"""

from __future__ import annotations

import json
import os
import resource
import select
import struct
import sys
from typing import Final

CPU_SECONDS: Final = 8
"""A feed of 5 MiB with 500 articles costs about 2 s, one with 20,000 bare entries about 5 s."""
MEMORY_BYTES: Final = 384 * 1024 * 1024
"""The same feeds take about 50 MB."""
IDLE_SECONDS: Final = 60
"""After so long without a question the process ends; the next question starts another one."""
LENGTHS: Final = struct.Struct(">II")
LENGTH: Final = struct.Struct(">I")


def answer_of(document: bytes, *, url: str, content_type: str) -> bytes:
    """Return the answer to one question: the feed, or the problem with the document."""
    from pipeline.sources.feeds.parse import FeedUnreadable, read_document  # noqa: PLC0415  needs the path from main()

    try:
        feed = read_document(document, url=url, content_type=content_type)
    except FeedUnreadable as error:
        return _to_json_lines({"problem": error.problem, "links": error.links})
    except (MemoryError, RecursionError):
        return _to_json_lines({"problem": "too_complex"})
    except Exception as error:  # noqa: BLE001  feedparser fails in many ways, and each means the same to the parent
        return _to_json_lines({"problem": "broken", "error": type(error).__name__})
    entries = feed.pop("entries")
    return _to_json_lines(feed, *entries)


def _to_json_lines(*records: object) -> bytes:
    """Return the records as lines of JSON."""
    return b"\n".join(
        json.dumps(record, ensure_ascii=False).encode("utf-8", errors="replace") for record in records
    )


def apply_limits() -> None:
    """Limit CPU time and memory of this process, and let it write no core dump."""
    limits = (
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CORE, 0),
    )
    for kind, maximum in limits:
        try:
            resource.setrlimit(kind, (maximum, maximum + 1 if kind == resource.RLIMIT_CPU else maximum))
        except (ValueError, OSError):
            # Some systems don't know RLIMIT_AS, or have a lower one; the parent's time limit holds anyway.
            continue


def _answer_in_fork(document: bytes, question: dict[str, str]) -> bytes:
    """Return the answer of a fork that parses only this document; if it dies, the problem `too_complex`."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        apply_limits()
        with os.fdopen(write_end, "wb") as out:
            out.write(answer_of(document, url=question["url"], content_type=question["content_type"]))
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    return answer if status == 0 else _to_json_lines({"problem": "too_complex"})


def _read_exactly(count: int) -> bytes | None:
    """Return `count` bytes of standard input, or `None` if it ends earlier."""
    pieces = []
    while count:
        piece = os.read(0, min(count, 1 << 20))
        if not piece:
            return None
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def serve() -> None:
    """Answer questions until standard input ends, or none comes for `IDLE_SECONDS`."""
    while select.select([0], [], [], IDLE_SECONDS)[0]:
        head = _read_exactly(LENGTHS.size)
        if head is None:
            return
        question_length, document_length = LENGTHS.unpack(head)
        question = _read_exactly(question_length)
        document = _read_exactly(document_length)
        if question is None or document is None:
            return
        answer = _answer_in_fork(document, json.loads(question))
        with os.fdopen(os.dup(1), "wb") as out:
            out.write(LENGTH.pack(len(answer)) + answer)
        del answer, document


def main(project_folder: str, library_folder: str) -> None:
    """Set the import path, import feedparser once for all forks, and serve."""
    # Python runs without `site` to start faster, so it doesn't know the library folder itself.
    sys.path += [project_folder, library_folder]
    import feedparser  # type: ignore[import-untyped, unused-ignore]  # noqa: F401, PLC0415  once, for all forks

    import pipeline.sources.feeds.feedparser_bounds  # noqa: PLC0415
    import pipeline.sources.feeds.parse  # noqa: F401, PLC0415

    serve()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
