"""Renders the forms of the pages."""

from __future__ import annotations

from typing import Any

from django.forms.renderers import DjangoTemplates
from django.template import engines


class PageRenderer(DjangoTemplates):
    """Renders labels, help and errors with `templates/forms`; widgets stay Django's, which the admin uses."""

    form_template_name = "forms/form.html"
    field_template_name = "forms/field.html"

    def get_template(self, template_name: str) -> Any:
        # Django's form renderer looks only in the apps' folders; `templates/` belongs to the project, so use
        # its engine.
        if template_name.startswith("forms/"):
            return engines["django"].get_template(template_name)
        return super().get_template(template_name)
