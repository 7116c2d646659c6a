"""The pages of what came to a webhook source."""
