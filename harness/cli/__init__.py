"""The command line: what a person typed, as data, and the verbs that carry it out."""
