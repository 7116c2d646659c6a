"""When a publication goes out: slots, caps, late rules, time zones."""
