"""Pages of newsletters: a workspace's subscribers and mailings, and what subscribers see."""
