"""Pages of generated items: the list, and each item as it
will look, with all that is known of it and done with it.
"""
