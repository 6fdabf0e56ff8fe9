"""Everything process-wide: threads, memory, files, and where a warning points."""
