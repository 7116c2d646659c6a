"""Decides what may run on this instance: kill switches, availability, host slots."""
