#!/usr/bin/env python3
"""Finds out what the names of data/flag_sets.txt are worth: flag_tables.py CC SETS OUT.cc

The names are the macros and enumerators of the headers; their values are what the compiler puts
into an array of them.
"""
import re
import subprocess
import sys

compiler, source, out = sys.argv[1:]
compiler = compiler.split()


def compile_text(text, *options):
    return subprocess.run([*compiler, "-D_GNU_SOURCE", "-w", "-x", "c", *options, "-"], input=text,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def names_in(includes, beginnings):
    """Macros without arguments, and enumerators."""
    macros = compile_text(includes, "-E", "-dM").stdout
    names = re.findall(r"^#define (\w+) \S", macros, re.M)
    text = compile_text(includes, "-E", "-P").stdout
    for body in re.findall(r"\benum\b[^{;]*\{([^}]*)\}", text):
        names += re.findall(r"(?:^|,)\s*(\w+)", body)
    return [name for name in dict.fromkeys(names) if name.startswith(tuple(beginnings))]


def values_of(includes, names):
    """By name; without those that are no numbers."""
    while names:
        lines = "".join(f"(unsigned long long)({name}),\n" for name in names)
        text = f"{includes}\nunsigned long long values[] = {{\n{lines}}};\n"
        first = text.split("\n").index("unsigned long long values[] = {") + 2
        done = compile_text(text, "-S", "-o", "-")
        if done.returncode == 0:
            numbers = re.findall(r"^\s*\.quad\s+(-?\d+)", done.stdout, re.M)
            if not numbers and re.search(r"\.zero\s+\d+", done.stdout):
                numbers = ["0"] * len(names)
            if len(numbers) != len(names):
                sys.exit(f"flag_tables.py: {len(numbers)} values of {len(names)} names: {names}")
            return {n: int(v) & (2**64 - 1) for n, v in zip(names, numbers)}
        wrong = {int(n) - first for n in re.findall(r"<stdin>:(\d+):\d+: error", done.stderr)}
        if not wrong:
            sys.exit(f"flag_tables.py: {done.stderr}")
        names = [name for i, name in enumerate(names) if i not in wrong]
    return {}


def one_set(line):
    name, headers, beginnings, options, uses = (part.strip() for part in line.split("|"))
    includes = "".join(f"#include <{header}>\n" for header in headers.split())
    words = dict((word + "=").split("=")[:2] for word in options.split())
    skipped = set(words.get("skip", "").split(","))
    wanted = [n for n in names_in(includes, beginnings.split()) if n not in skipped]
    values = values_of(includes, wanted)
    if not values:
        sys.exit(f"flag_tables.py: the headers of '{name}' have none of its names")
    field = "~uint64_t{0}" if "one" in words else words.get("field", "0")
    ordered = sorted(values.items(), key=lambda item: (-bin(item[1]).count("1"), item[1], item[0]))
    rows = "".join(f'    {{"{each}", {value:#x}u}},\n' for each, value in ordered)
    table = f"constexpr FlagName {name}_names[] = {{\n{rows}}};\n"
    found = [f'    {{"{use.split(":")[0]}", "{use.split(":")[1]}", {{{name}_names, {field}}}}},\n'
             for use in uses.split()]
    return table, found


def main():
    with open(source, encoding="utf-8") as file:
        lines = [line for line in file if line.strip() and not line.startswith("#")]
    tables, uses = zip(*(one_set(line) for line in lines))
    with open(out, "w", encoding="utf-8") as file:
        file.write('#include "tools/flag_names.h"\n\nnamespace gpr {\n\nnamespace {\n\n')
        file.write("\n".join(tables))
        file.write("\nconstexpr FlagUse uses[] = {\n" + "".join(sum(uses, [])) + "};\n\n")
        file.write("}  // namespace\n\nstd::span<const FlagUse> flag_uses() { return uses; }\n\n")
        file.write("}  // namespace gpr\n")


main()
