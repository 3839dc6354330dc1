"""How weights travel from the trainer's process into the engines'."""
