"""People's decisions on items: approve, reject, edit, undo, variants, storyboards."""
