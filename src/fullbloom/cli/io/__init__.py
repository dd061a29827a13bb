"""What comes in and goes out: sources, blocks of lines, records, outputs, the standard streams."""
