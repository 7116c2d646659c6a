"""The templates of films: each lays out a storyboard."""
