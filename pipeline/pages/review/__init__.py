"""Pages of the review queue: one card for each story, for decisions one after the other."""
