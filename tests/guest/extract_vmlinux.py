#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""extract_vmlinux.py BZIMAGE OUT: the ELF kernel within a compressed one, which QEMU starts without unpacking it under emulation."""
import lzma
import subprocess
import sys
import zlib


def unzstd(data):
    return subprocess.run(["zstd", "-dcq"], input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout


FORMATS = (
    (b"\xfd7zXZ\0", lambda data: lzma.LZMADecompressor().decompress(data)),
    (b"\x1f\x8b\x08", lambda data: zlib.decompressobj(31).decompress(data)),
    (b"\x28\xb5\x2f\xfd", unzstd),
)


def extract(image):
    for magic, unpack in FORMATS:
        at = image.find(magic)
        while at >= 0:
            try:
                kernel = unpack(image[at:])
            except (lzma.LZMAError, zlib.error, OSError):
                kernel = b""
            if kernel[:4] == b"\x7fELF":
                return kernel
            at = image.find(magic, at + 1)
    sys.exit("extract_vmlinux.py: no ELF kernel in " + sys.argv[1])


with open(sys.argv[1], "rb") as source:
    found = extract(source.read())
with open(sys.argv[2], "wb") as target:
    target.write(found)
