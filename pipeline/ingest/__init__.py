"""Takes content in by polls, pushes, webhooks and hub notifications, each entry exactly once."""
