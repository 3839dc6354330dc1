"""Series and stored rollouts as files, for spreadsheets and notebooks."""
