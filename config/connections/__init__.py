"""How the web processes take requests and send answers, so that no thread waits for a client."""
