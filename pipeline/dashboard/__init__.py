"""How a workspace is doing, counted for the first page and the digest."""
