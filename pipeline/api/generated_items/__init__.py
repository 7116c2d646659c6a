"""/v1/generated: its views, filters and answers."""
