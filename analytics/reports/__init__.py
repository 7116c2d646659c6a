"""What pages and mails say of a period."""
