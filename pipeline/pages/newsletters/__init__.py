"""Pages of newsletters: a workspace's list, and what subscribers see."""
