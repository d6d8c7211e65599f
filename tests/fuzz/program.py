"""A program as a tree that can lose parts and stay a program: what the generator makes and the minimiser takes away."""

import copy


class Block:
    """Statements between two lines: a loop, a branch, a scope. Strings are statements without parts."""

    def __init__(self, head, body, tail="}"):
        self.head, self.body, self.tail = head, body, tail

    def lines(self, depth):
        pad = "  " * depth
        yield pad + self.head
        yield from render(self.body, depth + 1)
        yield pad + self.tail


def render(body, depth):
    for item in body:
        if isinstance(item, Block):
            yield from item.lines(depth)
        else:
            for line in item.split("\n"):
                yield "  " * depth + line


class Function:
    """Everything but `body` has to stay for the program to compile. Without a head, definitions of other kinds."""

    def __init__(self, head, start, body, end, unit):
        self.head, self.start, self.body, self.end, self.unit = head, start, body, end, unit

    def text(self):
        inner = [*render(self.start, 1), *render(self.body, 1), *render(self.end, 1)]
        if self.head is None:
            return "\n".join([*self.start, *self.end, ""])
        return "\n".join([self.head + " {", *inner, "}", ""])


class Program:
    """`units` translation units of one language that share a header, and perhaps one of a plug-in. `variables` are
    those that are compared with what the machine code does; with a heap of its own, that is all that is compared."""

    def __init__(self, language, header, data, functions, units, variables, around):
        self.language, self.header, self.data, self.functions, self.units = language, header, data, functions, units
        self.variables = variables
        self.plug_in, self.own_heap = around.plug_in, around.own_heap
        self.forking, self.killing = around.forking, around.killing
        self.has_blocks, self.in_libstdcxx = around.has_blocks, around.in_libstdcxx
        self.foreign, self.foreign_names = around.foreign, around.foreign_names

    def sources(self):
        """Name and text of each file."""
        yield "fuzz.h", self.header
        suffix = "cpp" if self.language == "c++" else "c"
        for unit in range(self.units):
            parts = ['#include "fuzz.h"\n', self.data if unit == 0 else ""]
            parts += [function.text() for function in self.functions if function.unit == unit]
            yield f"unit{unit}.{suffix}", "\n".join(parts)
        if self.foreign:
            yield "foreign.c", self.foreign
        if self.plug_in:
            yield f"plug-in.{suffix}", '#include "fuzz.h"\n' + self.plug_in

    def bodies(self):
        """Every list of statements, outer ones first."""
        pending = [function.body for function in self.functions]
        while pending:
            body = pending.pop(0)
            yield body
            pending += [item.body for item in body if isinstance(item, Block)]


def minimise(program, still_fails):
    """Takes statements away as long as `still_fails` says so, largest pieces first."""
    best = program
    for pieces in (1, 2, 4, 1 << 30):
        which = 0
        while True:
            bodies = list(best.bodies())
            if which >= len(bodies):
                break
            size = max(1, -(-len(bodies[which]) // pieces))
            at = 0
            while at < len(list(best.bodies())[which]):
                trial = copy.deepcopy(best)
                body = list(trial.bodies())[which]
                del body[at:at + size]
                if still_fails(trial):
                    best = trial
                else:
                    at += size
            which += 1
    return best
