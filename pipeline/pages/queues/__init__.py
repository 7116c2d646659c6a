"""Pages of publishing times: the queues of a workspace, and the hold of all its publishing."""
