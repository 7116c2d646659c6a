"""Pages of outlets: the list with their health, one outlet and its settings, connecting, disconnecting."""
