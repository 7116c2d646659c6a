"""The pages of the review queue: one card for each story, decided on one after the other."""
