"""What workers report: ingest, series, samples, logs and the live streams that say what advanced."""
