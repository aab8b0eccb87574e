"""Clean: inference with PyTorch: weights uploaded, batches from pinned memory on a stream of their
own, a captured graph replayed, results read back."""
import torch

torch.manual_seed(1)
layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, dropout=0.0)
model = torch.nn.Sequential(torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False),
                            torch.nn.Linear(256, 32)).eval()
batches = [torch.randn(8, 64, 256).pin_memory() for _ in range(6)]
model = model.cuda()
copies = torch.cuda.Stream()
total = 0.0
with torch.inference_mode():
    for batch in batches:
        with torch.cuda.stream(copies):
            values = batch.to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(copies)
        values.record_stream(torch.cuda.current_stream())
        total += model(values).float().abs().mean().item()

    fixed = batches[0].cuda()
    warm = torch.cuda.Stream()
    warm.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm):
        for _ in range(2):
            model(fixed)
    torch.cuda.current_stream().wait_stream(warm)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = model(fixed)
    for batch in batches:
        fixed.copy_(batch)
        graph.replay()
        total += result.abs().mean().item()
print(f"sum {total:.4f}")
