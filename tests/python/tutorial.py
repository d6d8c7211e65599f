"""Does what docs/python.md says: saves its files, runs its commands, compares what they print."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

TEXT = pathlib.Path(__file__).parents[2] / "docs" / "python.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def main():
    environment = dict(os.environ, PATH=f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}")
    printed, compared = "", 0
    with tempfile.TemporaryDirectory() as folder:
        # The first block tells how to install what is installed here.
        for language, text in BLOCK.findall(TEXT.read_text()):
            if language in ("c", "python"):
                # The first line is a comment with the file's name.
                name = text.split("\n", 1)[0].split()[1]
                pathlib.Path(folder, name).write_text(text)
            elif language == "sh":
                printed = subprocess.run(
                    ["bash", "-eu", "-c", text],
                    cwd=folder,
                    env=environment,
                    check=True,
                    stdout=subprocess.PIPE,
                    text=True,
                    timeout=120,
                ).stdout
            elif language == "text":
                if printed != text:
                    sys.exit(f"{TEXT} shows\n{text}\nbut what is printed is\n{printed}")
                compared += 1
    if compared < 2:
        sys.exit(f"{TEXT} shows only {compared} outputs: is it still the tutorial?")
    print(f"{TEXT.name}: {compared} outputs are as shown")


if __name__ == "__main__":
    main()
