"""What this machine is, and whether it is suitable."""
