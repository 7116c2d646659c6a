"""Takes in deliveries to webhook sources: verifies the sender, stores the delivery, makes a raw item."""
