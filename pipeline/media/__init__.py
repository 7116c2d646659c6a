"""Stores media files: uploads, footage, pictures, films, speech."""
