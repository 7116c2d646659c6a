"""Pages under Settings › API keys: create, inspect, rotate and revoke a key."""
