"""The vLLM engine behind the rollout protocol. Nothing here imports vLLM before an engine is built."""
