"""Pages of outlets: the list with their health, each outlet with its settings, and the forms that connect one."""
