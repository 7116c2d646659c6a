"""What a benchmark is compared with: the least SQL and views that do the same."""
