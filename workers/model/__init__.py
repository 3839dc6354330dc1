"""One Qwen3-family transformer and its EAGLE-3 draft head, compatible with Hugging Face checkpoints."""
