"""Settings › API keys: make one, see what it does, replace it, end it."""
