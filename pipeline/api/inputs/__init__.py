"""The bodies that the API takes: strict, and every limit named."""
