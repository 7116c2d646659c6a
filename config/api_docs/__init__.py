"""Serves the OpenAPI document, and the guides as pages."""
