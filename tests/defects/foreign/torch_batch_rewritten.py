"""Two batches go through one pinned buffer. The second one is written into it while the copy of the
first is still queued.

On hardware: no error; both results are those of the second batch.
To be named: the copy to the device, whose bytes changed before anything waited for it."""
import torch

COUNT = 1 << 18

staging = torch.empty(COUNT).pin_memory()
device = torch.empty(2, COUNT, device="cuda")
torch.cuda.synchronize()
torch.cuda._sleep(50_000_000)  # cycles of work ahead of the copies
for batch in range(2):
    staging.fill_(1.0 + batch)
    device[batch].copy_(staging, non_blocking=True)
torch.cuda.synchronize()
print("first values:", device[:, 0].tolist())
