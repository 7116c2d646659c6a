"""What a workspace starts with, its defaults, digest, export and end."""
