"""Problems: everything of a workspace that needs a person, with why, and the act that clears it."""
