"""How the web processes take requests and send responses, so that no thread waits for a client."""
