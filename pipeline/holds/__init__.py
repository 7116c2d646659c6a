"""What happens to items whose source changes or is withdrawn."""
