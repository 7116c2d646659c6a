"""What every view of the API stands on: strict JSON in and out, pages, entity tags."""
