"""Keeps the credit ledger, its months and its reports."""
