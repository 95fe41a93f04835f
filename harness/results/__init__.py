"""From raw files to typed results; nothing here needs the host that measured."""
