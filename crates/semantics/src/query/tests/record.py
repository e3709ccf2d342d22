"""Fills in what PostgreSQL says to the statements of the case files: psql's options are the arguments.

The result of a statement is the names and types of its columns, or SQLSTATE, position and message of the error.
"""

import pathlib
import re
import subprocess
import sys

here = pathlib.Path(__file__).parent
psql = ["psql", "-XAtq", *sys.argv[1:]]


def said(script):
    return subprocess.run(
        psql, input=script, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True
    ).stdout


def answer(text, output):
    """The answer to a statement that was sent with a line for each word."""
    lines = output.strip("\n").split("\n") if output.strip("\n") else []
    error = next((line for line in lines if line.startswith("ERROR:  ")), None)
    if error is None:
        columns = [line.replace("|", " ") for line in lines if "|" in line]
        return ", ".join(columns) or "nothing"
    state, message = re.match(r"ERROR:  (\w+): (.*)", error).groups()
    place = ""
    for number, line in enumerate(lines):
        found = re.match(r"LINE (\d+): ", line)
        if found:
            caret = lines[number + 1].index("^") - found.end()
            before = text.split(" ")[: int(found.group(1)) - 1]
            place = f"@{sum(len(word) + 1 for word in before) + caret + 1}"
    return f"!{state}{place} {message}"


setup = "DROP SCHEMA IF EXISTS cases CASCADE;\nCREATE SCHEMA cases;\nSET search_path = cases;\n"
setup += (here / "schema.sql").read_text() + "\n\\set VERBOSITY verbose\n"
for path in sorted(here.glob("*.txt")):
    lines = path.read_text().splitlines()
    cases = [line.split(" => ", 1)[0] for line in lines if line and not line.startswith("# ")]
    script = setup.replace("DROP", "SET client_min_messages = error;\nDROP", 1)
    script += "".join("\\echo ====\n" + case.replace(" ", "\n") + "\n\\gdesc\n" for case in cases)
    answers = iter(zip(cases, said(script).split("====\n")[1:], strict=True))
    out = []
    for line in lines:
        if line and not line.startswith("# "):
            case, output = next(answers)
            line = f"{case} => {answer(case, output)}"
        out.append(line)
    path.write_text("\n".join(out) + "\n")
