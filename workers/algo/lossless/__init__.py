"""The lossless audit: whether emitted tokens are distributed as the policy says, whatever engine emitted them."""
