"""The pipeline in the operators' admin."""

from pipeline.admin import content, models_and_switches

__all__ = ["content", "models_and_switches"]
