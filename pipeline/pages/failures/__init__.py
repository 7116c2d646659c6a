"""The Problems page lists what needs a person in a workspace, with the reason and the act that clears it."""
