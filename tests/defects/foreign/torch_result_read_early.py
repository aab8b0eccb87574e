"""A result is copied into pinned memory without waiting, and read at once.

On hardware: no error; the sum is that of the memory's old content.
To be named: the read, with the instruction that made it, and the copy that it came before."""
import torch

COUNT = 1 << 18

result = torch.zeros(COUNT).pin_memory()
device = torch.full((COUNT,), 2.0, device="cuda")
torch.cuda.synchronize()
torch.cuda._sleep(50_000_000)  # cycles of work ahead of the copy
result.copy_(device, non_blocking=True)
print("sum:", result.sum().item())
torch.cuda.synchronize()
