"""How content comes in: polled, pushed, sent by webhooks, told by hubs; once each."""
