"""The networks of VMware's table of Project Radium, trained with PyTorch on images of CIFAR's size
that lie in memory (pinned, for a GPU): images a second, for three sizes of batches; and apart from
them the import, and an input pipeline that reads such images from a file.
Prints as lib/rates.py says.
cnn_subject.py [cuda|cpu] [SECONDS for each]"""

import os
import sys
import tempfile
import time

begun = time.monotonic()
import torch  # noqa: E402
from torch import nn  # noqa: E402

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cuda"
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
WARM_UP = 5 if DEVICE == "cuda" else 2  # steps
DEPTHS = (20, 32, 56, 110)
BATCHES = (32, 128, 512)
CLASSES, SIDE, PADDING = 10, 32, 4
RECORD = 1 + 3 * SIDE * SIDE  # bytes of an image in CIFAR's files: its class, then its pixels
FILE_IMAGES = 10_000  # as many as one of CIFAR's files has


class Block(nn.Module):
    """Version 2: normalization and activation come before each convolution."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        stride = 1 if inputs == outputs else 2
        self.before = nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU())
        self.path = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False))
        self.shortcut = nn.Conv2d(inputs, outputs, 1, 2, bias=False) if stride == 2 else None

    def forward(self, x):
        y = self.before(x)
        return self.path(y) + (self.shortcut(y) if self.shortcut else x)


def resnet(depth: int) -> nn.Module:
    each = (depth - 2) // 6
    widths = [16] * (each + 1) + [32] * each + [64] * each
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1, bias=False), *map(Block, widths, widths[1:]), nn.BatchNorm2d(64),
        nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES))


def alexnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 64, 5, 1, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.LocalResponseNorm(9),
        nn.Conv2d(64, 64, 5, 1, 2), nn.ReLU(), nn.LocalResponseNorm(9), nn.MaxPool2d(3, 2, 1),
        nn.Flatten(), nn.Linear(64 * 64, 384), nn.ReLU(), nn.Linear(384, 192), nn.ReLU(),
        nn.Linear(192, CLASSES))


def wait() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def images_a_second(net: nn.Module, size: int) -> float:
    net.to(DEVICE).train()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()
    images, labels = torch.randn(size, 3, SIDE, SIDE), torch.randint(CLASSES, (size,))
    if DEVICE == "cuda":
        images, labels = images.pin_memory(), labels.pin_memory()

    def step() -> None:
        x, y = images.to(DEVICE, non_blocking=True), labels.to(DEVICE, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        loss_of(net(x), y).backward()
        optimizer.step()

    for _ in range(WARM_UP):
        step()
    wait()
    start, steps = time.monotonic(), 0
    while time.monotonic() < start + SECONDS:
        step()
        steps += 1
        if steps % 8 == 0:
            wait()
    wait()
    return steps * size / (time.monotonic() - start)


class Images(torch.utils.data.Dataset):
    """Read from a file one by one, normalized, cropped and turned at random."""

    def __init__(self, path: str):
        self.file = os.open(path, os.O_RDONLY)

    def __len__(self) -> int:
        return FILE_IMAGES

    def __getitem__(self, index: int):
        record = torch.frombuffer(bytearray(os.pread(self.file, RECORD, index * RECORD)),
                                  dtype=torch.uint8)
        image = record[1:].reshape(3, SIDE, SIDE).float().sub_(127).div_(64)
        image = nn.functional.pad(image, (PADDING,) * 4)
        x, y, turned = torch.randint(2 * PADDING, (3,)).tolist()
        image = image[:, y:y + SIDE, x:x + SIDE]
        return image.flip(2) if turned % 2 else image, int(record[0])


def images_prepared_a_second(size: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "images")
        with open(path, "wb") as file:
            file.write(os.urandom(FILE_IMAGES * RECORD))
        loader = torch.utils.data.DataLoader(Images(path), size, shuffle=True)
        start, images = None, 0
        for batch, _ in loader:
            if start is None:  # the first one warms up
                start = time.monotonic()
                continue
            images += len(batch)
            if time.monotonic() > start + SECONDS:
                break
        return images / (time.monotonic() - start)


def main() -> None:
    print("import_torch", f"{time.monotonic() - begun:.4g}", "s", flush=True)
    torch.manual_seed(1)
    print("input_pipeline,_batch_128", f"{images_prepared_a_second(128):.5g}", "images/s",
          flush=True)
    nets = {"AlexNet": alexnet} | {f"ResNet-{depth}": lambda depth=depth: resnet(depth)
                                   for depth in DEPTHS}
    for name, make in nets.items():
        for size in BATCHES:
            net = make()
            print("=", name, sum(p.numel() for p in net.parameters()), flush=True)
            rate = images_a_second(net, size)
            print(f"{name},_batch_{size}", f"{rate:.5g}", "images/s", flush=True)


if __name__ == "__main__":
    main()
