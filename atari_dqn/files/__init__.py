"""Files that are whole or absent, directories that are whole or absent, and documents checked before use."""
