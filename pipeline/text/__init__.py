"""Analyses and converts texts in pure functions: links, markup, languages, sentences, similarity."""
