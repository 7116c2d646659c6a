"""Runs of brand lanes: which topic a lane takes, and what its persona has said before."""
