#!/usr/bin/env python3
"""Turns the flat stub into a C++ array: embed.py stub.bin out.cc"""
import sys

data = open(sys.argv[1], "rb").read()
with open(sys.argv[2], "w") as out:
    out.write("#include \"stub/image.h\"\n\nnamespace gpr {\n\n")
    out.write("const unsigned char stub_image[] = {%s};\n" % ",".join(str(b) for b in data))
    out.write("const unsigned long stub_image_size = sizeof(stub_image);\n\n}  // namespace gpr\n")
