"""The kinds of plug-ins that the product has, by name: one whose file is no longer found would only be missing."""

from __future__ import annotations

import ast

import pytest

from pipeline import plugins
from tests.architecture.code import modules

KINDS = {
    "sources": "brand rss scraper tiktok webhook youtube",
    "engines": "blog_article carousel clipped_short composite_short linkedin_post newsletter_digest newsletter_issue "
    "persona_short persona_tweet quote_graphic short_post template_short thread",
    "writers": "claude extractive",
    "platforms": "bluesky discord email_newsletter feed ghost handoff linkedin mastodon signed_webhook simulated slack "
    "telegram wordpress x youtube",
    "voices": "system tool",
}


@pytest.mark.parametrize("family", plugins.FAMILIES)
def test_every_kind_is_registered(family):
    assert plugins.kinds(family) == tuple(KINDS[family].split()), f"KINDS lists what is in pipeline/{family}/"


def test_nobody_compares_the_name_of_a_platform():
    """What a platform is like, its own folder says; a new one needs no other."""
    kinds = set(KINDS["platforms"].split())
    named = [
        module.at(node)
        for module in modules()
        if not module.path.startswith("pipeline/platforms/")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Compare)
        and kinds & {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
        and "platform" in ast.unparse(node)
    ]
    assert named == []
