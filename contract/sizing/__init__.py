"""What a model weighs and costs, by arithmetic alone: parameters, memory per GPU, floating-point operations."""
