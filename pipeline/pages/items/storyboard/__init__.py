"""The page of a film's storyboard: its form, and each scene as it is shown."""
