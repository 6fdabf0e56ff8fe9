"""2. Data frames: a pandas or polars frame of labels in, a frame of degrees with the same columns and index out."""

import pandas as pd

from contone import Inversion

songs = pd.DataFrame(
    {
        "tempo": [0.9, 0.8, 0.2, 0.1, 0.5, 0.4, 0.95, 0.15],
        "loudness": [0.7, 0.9, 0.1, 0.3, 0.5, 0.6, 0.8, 0.2],
        "calm": [0, 0, 1, 1, 1, 0, 0, 1],
        "happy": [1, 1, 0, 0, 1, 1, 1, 1],
        "sad": [0, 0, 1, 1, 0, 1, 0, 0],
    },
    index=["waltz", "polka", "hymn", "dirge", "ballad", "blues", "jig", "lullaby"],
)

degrees = Inversion().fit_enhance(songs[["tempo", "loudness"]], songs[["calm", "happy", "sad"]])
print(degrees.round(3))
