"""The inbound door: what is POSTed to a webhook source's own address."""
