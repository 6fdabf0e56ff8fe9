"""Is this answer credible, and which method is best here, when no truth exists?"""

from contone.check.rehearsal import Rehearsal, Replicate

__all__ = ["Rehearsal", "Replicate"]
