"""The policy's training by Megatron-core over many ranks, on GPUs or on processors."""
