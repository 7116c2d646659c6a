"""Pages of a film's storyboard: the form that edits it, and each scene as it is shown."""
