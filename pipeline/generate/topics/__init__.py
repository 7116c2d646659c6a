"""Runs generations of brand lanes: chooses topics, and compares drafts with the persona's recent items."""
