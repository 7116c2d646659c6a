"""Platforms on loopback, one file per kind: each keeps a ledger of what it took, and fails as a test says."""
