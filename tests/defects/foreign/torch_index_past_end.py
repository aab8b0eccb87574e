"""An embedding is given an id that its table does not have. PyTorch's kernel checks it and stops; the
error surfaces where the result is read.

On hardware: "device-side assert triggered" at the call that waits; the program prints it and ends
with 7.
To be named: the kernel that asserted, in the first run."""
import sys

import torch

table = torch.nn.Embedding(1000, 64).cuda()
ids = torch.arange(512, device="cuda")
values = table(ids).sum()
ids[100] = 100_000
try:
    values += table(ids).sum()
    print("sum:", values.item())
except RuntimeError as error:
    print("caught:", str(error).splitlines()[0])
    sys.exit(7)
