"""The base of every view of the API: strict JSON in and out, pagination, entity tags."""
