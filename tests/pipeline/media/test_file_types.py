"""What a text is, by what it begins with."""

from __future__ import annotations

import pytest

from pipeline.media.uploads import file_types


@pytest.mark.parametrize(
    ("text", "mime_type"),
    [
        ("<!-- a --> <!-- b -->\n<html><body>x", "text/html"),
        ("<!-- a <html> --> words", "text/plain"),
        ("<!-- never closed <p>", "text/plain"),
        # Trying every way to cut these into comments takes longer than the sun lasts.
        ("<!---->" * 60 + "words", "text/plain"),
        ("<!-- --> " * 60 + "words", "text/plain"),
        (" " * 100_000 + "words", "text/plain"),
    ],
)
def test_comments_before_a_page_are_passed_over(text, mime_type):
    assert file_types.sniff_text(text.encode()).mime_type == mime_type
