"""Data in, files out: text laid out and pictures drawn, without a clock, a network or a database."""
