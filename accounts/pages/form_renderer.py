"""How forms look on the pages."""

from __future__ import annotations

from typing import Any

from django.forms.renderers import DjangoTemplates
from django.template import engines


class PageRenderer(DjangoTemplates):
    """Labels, help and errors in the frame of `templates/forms`; the widgets stay Django's, which the admin uses."""

    form_template_name = "forms/form.html"
    field_template_name = "forms/field.html"

    def get_template(self, template_name: str) -> Any:
        # Django's form renderer looks only in the apps' folders; `templates/` is the project's, so its engine is asked.
        if template_name.startswith("forms/"):
            return engines["django"].get_template(template_name)
        return super().get_template(template_name)
