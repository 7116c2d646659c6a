"""The Problems page lists everything in a workspace that needs a person, with the reason and the act that clears it."""
