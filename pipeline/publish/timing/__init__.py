"""Decides when a publication goes out: slots, rate caps, late policies, time zones."""
