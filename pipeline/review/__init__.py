"""Carries out people's decisions on items: approve, reject, edit, rewrite, undo, variants, storyboards."""
