#!/usr/bin/env python3
"""Turns a file into a C++ array: embed.py NAME INPUT OUT.cc OUT.h

The array is gpr::NAME, its length in bytes gpr::NAME_size.
"""
import os
import sys

name, source, code, header = sys.argv[1:]
data = open(source, "rb").read()
with open(header, "w") as out:
    out.write(f"#pragma once\n\n#include <cstddef>\n\nnamespace gpr {{\n\n"
              f"extern const unsigned char {name}[];\nextern const std::size_t {name}_size;\n\n"
              "}  // namespace gpr\n")
with open(code, "w") as out:
    out.write(f"#include \"{os.path.basename(header)}\"\n\nnamespace gpr {{\n\n"
              f"alignas(8) const unsigned char {name}[] = {{{','.join(map(str, data))}}};\n"
              f"const std::size_t {name}_size = sizeof {name};\n\n}}  // namespace gpr\n")
