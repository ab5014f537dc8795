"""A byte-level mixture-of-experts language model of 4 million weights, to stream for real.

Trained by `training/` of the repository on Italian prose, Python source and English narrative; `recipe.json` beside the
weights says how. Read `shape`, `weights`, `attention`, `network`, `sampling`, `decode`, `running`.
"""

from expertcache_reference.tinymoe.decode import Decoder, Step
from expertcache_reference.tinymoe.network import Network, Session
from expertcache_reference.tinymoe.running import Compared, Loaded, compare, loaded
from expertcache_reference.tinymoe.sampling import Sampler
from expertcache_reference.tinymoe.shape import PARTS, TINY, Shape
from expertcache_reference.tinymoe.weights import Dense, recipe, records, weights_path

__all__ = [
    "PARTS", "TINY", "Compared", "Decoder", "Dense", "Loaded", "Network", "Sampler", "Session", "Shape", "Step",
    "compare", "loaded", "recipe", "records", "weights_path",
]  # fmt: skip
