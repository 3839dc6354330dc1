"""What workers report and what the control plane answers."""
