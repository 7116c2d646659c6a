"""The calendar: what goes out when, a week filled at once, and one post moved to another time."""
