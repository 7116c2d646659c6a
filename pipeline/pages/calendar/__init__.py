"""Pages of the calendar: what is published when, how a week is filled, and how one post is moved."""
