"""/v1/generated: its views, their filters, and how items are answered."""
