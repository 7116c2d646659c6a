"""Pages of outlets: which there are and how they are doing, one of them, connecting and disconnecting."""
