"""The programs under test, as one of two kinds: a server, or a batch job that runs in-process."""
