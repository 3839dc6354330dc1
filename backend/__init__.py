"""The control plane: a service that stores, dispatches and watches runs."""
