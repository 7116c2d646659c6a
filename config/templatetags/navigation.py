"""Registers the template tags of `pipeline.pages.navigation`, whose navigation is on every page."""

from django import template

from pipeline.pages import navigation

register = template.Library()
register.simple_tag(navigation.sections)
register.simple_tag(navigation.settings_tabs)
register.simple_tag(navigation.tabs_of_open_page)
register.filter("is_settings_page", navigation.is_settings_page)
