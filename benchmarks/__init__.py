"""Ratios against a floor, side by side in one run on one database and one server."""
