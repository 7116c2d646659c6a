"""The OpenAPI document and the guides as pages."""
