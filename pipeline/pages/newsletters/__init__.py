"""Pages of newsletters: a workspace's subscribers and mailings, and the public pages of subscribers."""
