"""Sound: decoded, measured, mixed, and speech with the times of its words."""
