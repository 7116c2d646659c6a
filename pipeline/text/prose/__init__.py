"""Splits texts into sentences, and finds those that can't be understood or asserted alone."""
