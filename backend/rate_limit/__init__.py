"""How many requests a caller, or an address that strangers come from, may send."""
