"""The operators' pages besides Django's own."""
