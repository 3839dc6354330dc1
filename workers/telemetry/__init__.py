"""How a worker reports: a spool on disk, and a thread that delivers it."""
