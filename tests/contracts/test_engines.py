"""GET /engines."""

from __future__ import annotations

from pipeline import plugins
from pipeline.engines.base import BUCKETS, Engine

NO_CJK = {
    "code": "missing_glyphs",
    "field": None,
    "reason": "Pictures and films can't show Chinese, Japanese and Korean here.",
    "remedy": "Ask the operator to install Debian's package fonts-noto-cjk, or choose a format without pictures.",
}


def test_engines_lists_every_engine_with_its_price(api):
    answer = api.read("/engines")
    assert answer == {
        "data": [
            {
                "name": engine.name,
                "bucket": engine.bucket,
                "credits": engine.credits,
                "made_from": list(engine.made_from),
                "version": engine.version,
                "available": True,
                "reason": None,
                "remedy": None,
                "restrictions": [NO_CJK] if engine.bucket in {"image", "video"} else [],
            }
            for engine in plugins.every("engines", Engine)
        ],
        "has_more": False,
        "next_cursor": None,
    }
    assert {
        "name": "Short Post",
        "bucket": "text",
        "credits": 1,
        "made_from": ["text", "topic"],
        "version": 1,
        "available": True,
        "reason": None,
        "remedy": None,
        "restrictions": [],
    } in answer["data"]
    assert {engine["bucket"] for engine in answer["data"]} <= set(BUCKETS)


def test_engines_takes_no_parameters(api):
    answer = api.get("/engines?limit=1")
    assert (answer.status_code, answer.json()) == (
        400,
        {
            "error": "invalid_request",
            "detail": [
                {
                    "field": "limit",
                    "code": "unknown_parameter",
                    "message": "There is no parameter limit. This answer has no pages: it holds everything that is asked for.",
                }
            ],
        },
    )
