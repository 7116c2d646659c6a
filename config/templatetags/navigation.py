"""Template tags for the navigation of `pipeline.pages.navigation`, which is on every page."""

from django import template

from pipeline.pages import navigation

register = template.Library()
register.simple_tag(navigation.sections)
register.simple_tag(navigation.settings_tabs)
register.simple_tag(navigation.tabs_here)
register.filter("is_of_settings", navigation.is_of_settings)
