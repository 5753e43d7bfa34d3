"""The example projects and the repository's own files."""
