"""What the applications of docs/applications save, measured."""
