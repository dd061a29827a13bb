"""Moves members that several classes of the stub share into private base classes.

At runtime there are no such bases: each class is native and final. In the stub they save half of its lines.
Type checkers see the same members either way.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import count, groupby

#: Lines that a base class must save to be worth its name.
LEAST_SAVED = 8


def share_members(text: str) -> str:
    """The stub with a private base class for each set of classes that share members of some length."""
    lines = text.split("\n")
    classes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    units = {node.name: members(node, lines) for node in classes}
    owners: dict[str, list[str]] = defaultdict(list)
    for name, found in units.items():
        for unit in found:
            owners[unit].append(name)
    bases: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for unit, owned in owners.items():
        bases[tuple(owned)].append(unit)
    worth = {names: shared for names, shared in bases.items() if saved_lines(names, shared) >= LEAST_SAVED}
    named: dict[tuple[str, ...], str] = {}
    for names, shared in worth.items():
        possible = base_names(shared[0], len(names))
        named[names] = next(name for name in possible if name not in named.values())
    moved = {unit for shared in worth.values() for unit in shared}

    for node in reversed(classes):
        inherited = [base for names, base in named.items() if node.name in names]
        if not inherited:
            continue
        for unit, (first, last) in reversed(units[node.name].items()):
            if unit in moved:
                del lines[first:last]
        header = f"class {node.name}:"
        if lines[node.lineno - 1] != header:
            raise ValueError(f"{node.name} has a base class already: {lines[node.lineno - 1]}")
        lines[node.lineno - 1] = f"class {node.name}({', '.join(inherited)}):"
    top = classes[0].decorator_list[0].lineno - 1 if classes[0].decorator_list else classes[0].lineno - 1
    written = [f"class {named[names]}:\n" + "\n".join(shared) + "\n" for names, shared in worth.items()]
    return "\n".join([*lines[:top], *written, *lines[top:]])


def members(node: ast.ClassDef, lines: list[str]) -> dict[str, tuple[int, int]]:
    """Each method of a class, overloads together, as `shareable`, with its range of lines."""
    found = {}
    functions = [inner for inner in node.body if isinstance(inner, ast.FunctionDef)]
    for _, same in groupby(functions, key=lambda function: function.name):
        group = list(same)
        decorators = group[0].decorator_list
        first = (decorators[0].lineno if decorators else group[0].lineno) - 1
        last = group[-1].end_lineno or first
        found[shareable("\n".join(lines[first:last]), node.name)] = (first, last)
    return found


def shareable(unit: str, owner: str) -> str:
    """A method without what names its class: its example, and the class as the type it returns."""
    if "@staticmethod" not in unit:
        unit = re.sub(rf"-> {owner}\b", "-> Self", unit)
    return re.sub(r"\n\n *>>> .*?(?=\n *\"\"\"\n|\n *\"\"\"$)", "", unit, flags=re.DOTALL)


def saved_lines(names: tuple[str, ...], shared: list[str]) -> int:
    """How many lines a base class of some classes saves."""
    return (len(names) - 1) * sum(unit.count("\n") + 1 for unit in shared) - 2


def base_names(unit: str, classes: int) -> Iterator[str]:
    """Yield names for a base class shared by so many classes, after the first function of a text."""
    name = unit.partition("def ")[2].partition("(")[0]
    stem = "".join(word.capitalize() for word in name.strip("_").split("_"))
    yield f"_{stem}Members"
    yield from (f"_{stem}MembersOf{classes + more}" for more in count())
