"""X -> D^: label distribution learners."""
