"""Files as they are stored: uploads, footage, pictures, films, speech."""
