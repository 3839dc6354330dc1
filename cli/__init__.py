"""The `foredeck` command: talks HTTP only, except `up`, `status` and `down`, which run everything on this machine."""
