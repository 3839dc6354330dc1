"""The algorithms, as pure functions of tensors."""
