"""Credits: the ledger, its months and its reports."""
