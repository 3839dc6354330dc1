"""What proposes tokens for the policy to verify; one file a drafter."""
