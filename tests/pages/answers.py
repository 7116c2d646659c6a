"""Addresses of pages, and what an answer shows."""

from __future__ import annotations

from django.contrib.messages import get_messages
from django.urls import reverse


def at(workspace, name, **ids):
    """A page's address in a workspace."""
    return reverse(name, kwargs={"ws": workspace.pk, **ids})


def said(answer):
    """The messages that wait for the next page."""
    return [str(message) for message in get_messages(answer.wsgi_request)]


def errors(answer):
    """A form's errors by field."""
    return {name: list(texts) for name, texts in answer.context["form"].errors.items()}


def text_of(answer):
    return answer.content.decode()
