"""The Ray clusters that runs go to."""
