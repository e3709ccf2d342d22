"""Fills in what PostgreSQL says to the expressions of cases.txt and functions.txt: psql's options are the arguments."""

import pathlib
import subprocess
import sys

for name in ("cases.txt", "functions.txt"):
    path = pathlib.Path(__file__).with_name(name)
    lines = path.read_text().splitlines()
    script = ["\\set VERBOSITY sqlstate", "\\pset null NULL", "SET timezone = 'UTC';"]
    for line in lines:
        if line and not line.startswith("# "):
            expression = line.rsplit(" => ", 1)[0]
            script += ["\\echo ====", f"SELECT pg_typeof({expression}) || ': ', {expression};"]
    said = subprocess.run(
        ["psql", "-XAtq", "-F", "", *sys.argv[1:]],
        input="\n".join(script), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True,
    ).stdout
    answers = iter(answer.strip("\n") for answer in said.split("====\n")[1:])
    out = []
    for line in lines:
        if line and not line.startswith("# "):
            answer = next(answers).replace("\n", "\\n")
            if answer.startswith("ERROR:  "):
                answer = "!" + answer.removeprefix("ERROR:  ")
            line = f"{line.rsplit(' => ', 1)[0]} => {answer}"
        out.append(line)
    path.write_text("\n".join(out) + "\n")
