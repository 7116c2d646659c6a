"""The pipeline in the operators' admin."""

from pipeline.admin import content, operations

__all__ = ["content", "operations"]
