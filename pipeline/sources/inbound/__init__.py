"""What a webhook source needs to read a delivery: signatures, expressions, presets, and the entry they make."""
