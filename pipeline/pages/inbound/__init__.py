"""Pages of the deliveries to a webhook source."""
