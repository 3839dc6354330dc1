"""Generation of responses: the engine's protocol, Foredeck's own engine in torch, and drafters."""
