#!/usr/bin/env python3
"""same_text.py HOST.npy DEVICE.npy: whether two greedy runs say the same, from the logits of their tokens.

Both began with the same prompt. Where their likeliest ids first differ, the host's two best logits must be so close
that what the devices' logits differ by there (rounding of activations, order of sums) can turn them round: less than
four times the usual difference apart, three standard deviations of the difference of two. The usual one is by the
median, which a few wrong logits do not move, and no more than 2 % of how the row's logits spread. Exit status 0: the
same, or different from such a place on; 1: not; 77: no numpy.
"""
import sys

try:
    import numpy
except ImportError:
    print("numpy is not installed")
    sys.exit(77)

host, device = (numpy.load(name) for name in sys.argv[1:3])
rows = min(len(host), len(device))
differ = numpy.flatnonzero(host[:rows].argmax(axis=1) != device[:rows].argmax(axis=1))
if rows == 0 or (len(differ) == 0 and len(host) != len(device)):
    print(f"{len(host)} and {len(device)} rows of logits")
    sys.exit(1)
if len(differ) == 0:
    print(f"{rows} tokens the same")
    sys.exit(0)
row = differ[0]
best = numpy.sort(host[row])[-2:]
apart, usual = best[1] - best[0], 1.4826 * numpy.median(numpy.abs(host[row] - device[row]))
print(f"{row} of {rows} tokens the same; then the host's two best logits are {apart:.3f} apart, its logits and the device's "
      f"usually {usual:.3f}")
sys.exit(0 if apart < 4 * usual and usual < 0.02 * host[row].std() else 1)
