"""What people decide on items: approve, reject, edit, undo, variants, storyboards."""
