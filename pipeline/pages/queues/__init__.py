"""Pages of publishing times: the queues of a workspace, and the pause of all its publishing."""
