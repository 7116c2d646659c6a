"""The request bodies that the API takes: strict, with every limit documented."""
