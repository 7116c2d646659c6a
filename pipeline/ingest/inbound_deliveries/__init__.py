"""Take in what is sent to a webhook source: prove the sender, keep the delivery, make a raw item of it."""
