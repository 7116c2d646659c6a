"""Words and pictures that several engines use."""
