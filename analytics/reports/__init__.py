"""Reports about a period, for pages and mails."""
