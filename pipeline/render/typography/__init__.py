"""Text laid out: fonts, scripts, lines, boxes."""
