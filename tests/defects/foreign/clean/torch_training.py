"""Clean: a few training steps with PyTorch: a loader with workers' pinned memory, mixed precision,
backward, AdamW, a checkpoint taken back to the host."""
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # the same sums every time
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
torch.use_deterministic_algorithms(True)
data = TensorDataset(torch.randn(512, 128), torch.randint(0, 10, (512,)))
loader = DataLoader(data, batch_size=64, pin_memory=True)
model = torch.nn.Sequential(torch.nn.Linear(128, 512), torch.nn.GELU(), torch.nn.LayerNorm(512),
                            torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 10))
model = model.cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cuda")
losses = []
for epoch in range(2):
    for values, labels in loader:
        values, labels = values.cuda(non_blocking=True), labels.cuda(non_blocking=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(values), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
saved = {name: value.cpu() for name, value in model.state_dict().items()}
norm = sum(value.double().abs().sum().item() for value in saved.values())
print(f"loss {losses[0].item():.5f} -> {losses[-1].item():.5f}, weights {norm:.3f}")
