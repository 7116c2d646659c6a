"""Takes in what is sent to a webhook source: verifies the sender, stores the delivery, makes a raw item."""
