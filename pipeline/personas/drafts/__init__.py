"""Drafts of personas: asked for, made from a site or past posts, and forgotten when nobody has saved them."""

from pipeline.personas.drafts.requests import forget, request, retry
from pipeline.personas.drafts.task import give_up, work

__all__ = ["forget", "give_up", "request", "retry", "work"]
