"""Work of PyTorch on a GPU: prints a line for each measure, `NAME VALUE UNIT`, and for each result
that must be the same everywhere `= NAME VALUE`."""

import time

begun = time.monotonic()
import torch  # noqa: E402
from torch import nn  # noqa: E402

GPU = "cuda"


def tell(name: str, value: float, unit: str) -> None:
    print(name.replace(" ", "_"), f"{value:.6g}", unit, flush=True)


def same(name: str, value: object) -> None:
    print("=", name, value, flush=True)


def rate(count: int, work) -> float:
    """How many a second, after a few that do not count."""
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    start = time.monotonic()
    for _ in range(count):
        work()
    torch.cuda.synchronize()
    return count / (time.monotonic() - start)


def trainer(net: nn.Module, batch, loss_of):
    net.to(GPU)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss_of(net(batch)).backward()
        optimizer.step()

    return step


def arithmetic() -> None:
    a = torch.randn(8192, 8192, device=GPU, dtype=torch.bfloat16)
    b = torch.randn_like(a)
    tell("bf16 matrix product", rate(60, lambda: a @ b) * 2 * 8192**3 / 1e12, "TFLOP/s")
    x = torch.zeros(16, device=GPU)
    tell("small kernels", rate(20_000, lambda: x.add_(1)), "/s")
    tell("small kernels, each awaited", rate(5_000, lambda: x.sum().item()), "/s")
    same("small kernels", float(x[0]))


def transfers() -> None:
    host = torch.arange(64 << 20, dtype=torch.float32)
    pinned, device = host.pin_memory(), torch.empty(64 << 20, device=GPU)
    size = host.numel() * 4 / 1e9
    to, fro = (lambda: device.copy_(pinned, non_blocking=True),
               lambda: pinned.copy_(device, non_blocking=True))
    tell("pinned to device", size * rate(20, to), "GB/s")
    tell("device to pinned", size * rate(20, fro), "GB/s")
    tell("pageable to device", size * rate(5, lambda: device.copy_(host)), "GB/s")
    tell("device to pageable", size * rate(5, lambda: host.copy_(device)), "GB/s")
    same("transfers", float(host[12345]))


def training() -> None:
    small = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                          nn.Linear(1024, 10))
    images = nn.Sequential(*(layer for n in range(4) for layer in (
        nn.Conv2d(3 if n == 0 else 64 << (n - 1), 64 << n, 3, stride=2, padding=1),
        nn.BatchNorm2d(64 << n), nn.ReLU())), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(512, 10))
    words = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True), 8).to(torch.bfloat16)
    square = lambda y: y.float().pow(2).mean()  # noqa: E731
    step = trainer(small, torch.randn(512, 256, device=GPU), square)
    tell("training: perceptron", rate(500, step), "steps/s")
    step = trainer(images, torch.randn(64, 3, 224, 224, device=GPU), square)
    tell("training: convolutions", rate(30, step), "steps/s")
    step = trainer(words, torch.randn(16, 512, 1024, device=GPU, dtype=torch.bfloat16), square)
    tell("training: transformer", rate(20, step), "steps/s")
    words.eval()
    one = torch.randn(1, 1, 1024, device=GPU, dtype=torch.bfloat16)
    with torch.no_grad():
        tell("inference: a token", rate(200, lambda: words(one)), "/s")


def main() -> None:
    tell("import torch", time.monotonic() - begun, "s")
    torch.manual_seed(1)
    start = time.monotonic()
    same("first", float(torch.ones(1000, device=GPU).sum()))
    tell("first kernel", time.monotonic() - start, "s")
    arithmetic()
    transfers()
    training()


if __name__ == "__main__":
    main()
