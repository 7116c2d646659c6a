"""Pure functions over texts: normalization, links, markup, sentences, similarity."""
