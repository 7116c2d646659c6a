"""What films look like: each template lays out a storyboard."""
