"""What the real package compiles from C++."""
