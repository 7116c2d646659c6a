"""Pages of generated items: their list, and the page of each item with its actions."""
