"""Pages of problems: what needs a person in a workspace, with the reason and the act that helps."""
