"""Takes requests and sends responses in the web processes, so that no thread waits for a client."""
