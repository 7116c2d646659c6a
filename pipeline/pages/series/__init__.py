"""Pages of series: digests that are made by themselves, at times of the week."""
