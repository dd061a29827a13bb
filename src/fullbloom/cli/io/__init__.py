"""Input and output: sources, blocks of lines, records, outputs, the standard streams."""
