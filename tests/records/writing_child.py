"""A process that writes records: `writing_child.py MODE STORE`.

`endless` writes until it is killed; `full` writes 3000 under a limit on the size of files, as on a full disk, lifts the
limit half-way, and prints how many were dropped and how many are kept.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

from kept_records import Counted, basis_at, kept, quick_writer, record, until

mode, path = sys.argv[1], Path(sys.argv[2])
counted = Counted()
basis, writer = basis_at(path), quick_writer(counted)
if mode == "endless":
    writer.start()
    while True:
        for _ in range(20):
            writer.put(basis, record())
        time.sleep(0.002)
# The limit is the process's own: no file of it grows beyond.
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (256 * 1024, most))
writer.start()
for _ in range(1500):
    writer.put(basis, record())
until(lambda: counted.dropped().get("store", 0) > 0, "a drop")
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
for _ in range(1500):
    writer.put(basis, record())
writer.close()
print(sum(counted.dropped().values()), len(kept(path)))
