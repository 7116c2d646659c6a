"""Registers the pipeline in the operators' admin."""

from pipeline.admin import content, runtime

__all__ = ["content", "runtime"]
