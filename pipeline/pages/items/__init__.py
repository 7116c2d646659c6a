"""Pages of what was made: the list of items, and one item as it will look, with all that is known and done of it."""
