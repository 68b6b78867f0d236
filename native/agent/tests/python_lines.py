# The line tables of some modules of the standard library: for each code object the input of `python_lines` on descriptor
# 3, and on standard output what Python itself reports.
import argparse, ast, asyncio.events, enum, inspect, json.decoder, os, sys, typing

def codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, type(code)):
            yield from codes(constant)

with open(3, "w") as tables:
    for module in (argparse, ast, asyncio.events, enum, inspect, json.decoder, os, typing):
        source = open(module.__file__).read()
        for code in codes(compile(source, module.__file__, "exec")):
            places = [f"{line or 0}:{column + 1 if line and column is not None else 0}" for line, _, column, _ in code.co_positions()]
            units = range(0, len(places), 1 + len(places) // 50)
            print(code.co_firstlineno, code.co_linetable.hex(), ",".join(map(str, units)), file=tables)
            print(*[places[unit] for unit in units], end=" \n")
