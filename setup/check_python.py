"""The cheap checks on our Python files: they compile, use what they import, and fit the screen."""

import ast
import sys

MAX_COLUMNS = 120


def problems(path):
    """Yields (line, message)."""
    with open(path) as file:
        text = file.read()
    try:
        tree = ast.parse(text, path)
    except SyntaxError as error:
        yield error.lineno, error.msg
        return
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > MAX_COLUMNS:
            yield number, f"{len(line)} columns, more than {MAX_COLUMNS}"
        if line != line.rstrip():
            yield number, "blanks at the end"
    imported = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for name in node.names:
                imported[(name.asname or name.name).split(".")[0]] = node.lineno
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for name, line in imported.items():
        if name not in used:
            yield line, f"{name} is imported and never used"


def main(paths):
    found = [(path, *problem) for path in paths for problem in problems(path)]
    for path, line, message in found:
        print(f"{path}:{line}: {message}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
