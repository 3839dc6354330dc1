"""What action.yml runs. Everything comes and goes by environment variables and files: no text of a user is ever part of
a command."""
