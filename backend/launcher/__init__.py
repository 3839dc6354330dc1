"""Takes runs to Ray and keeps asking Ray how they are. The only part that knows Ray."""
