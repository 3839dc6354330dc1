"""The training side: what runs inside a Ray job. Meets the control plane only in `contract`."""
