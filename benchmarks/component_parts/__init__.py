"""Parts of generation that are timed by themselves."""
