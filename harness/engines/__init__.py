"""The programs under test, each of one of two kinds: a server, or an in-process batch job."""
