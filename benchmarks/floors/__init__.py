"""Holds the floor of the API's benchmarks: the least SQL and views that do the same."""
