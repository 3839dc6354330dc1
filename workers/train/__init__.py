"""Updates of the policy and of its draft head."""
