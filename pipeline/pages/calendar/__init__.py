"""Pages of the calendar: what is published when, filling
a week at once, and moving one post to another time.
"""
