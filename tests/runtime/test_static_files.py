"""Static files as a deployment collects them."""

from __future__ import annotations

import re

from django.core.management import call_command

from config.static_files import StaticFiles


def test_a_script_imports_its_parts_under_the_names_that_change_with_them(settings, tmp_path):
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": f"{StaticFiles.__module__}.{StaticFiles.__name__}"},
    }
    call_command("collectstatic", interactive=False, verbosity=0)
    (script,) = tmp_path.glob("js/review.*.js")
    parts = [script, *tmp_path.glob("js/review/*.????????????.js")]
    assert len(parts) > 6
    for part in parts:
        for name in re.findall(r'from "([^"]+)"', part.read_text()):
            assert re.fullmatch(r"\./(review/)?\w+\.[0-9a-f]{12}\.js", name), (part, name)
            assert (part.parent / name).is_file()
