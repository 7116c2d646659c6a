"""Pages of outlets: the list with their health, one outlet with its settings, connecting and disconnecting."""
