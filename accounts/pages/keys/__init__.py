"""Serves the pages under Settings › API keys, which create, show, rotate and revoke keys."""
