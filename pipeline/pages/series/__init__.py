"""Pages of series, which make digests at set times of the week."""
