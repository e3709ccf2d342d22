#!/usr/bin/env python3
"""Times the load of one CSV file into a table with a primary key: Albireo's shell against DuckDB.

    python3 -m venv target/venv && target/venv/bin/pip install duckdb
    target/venv/bin/python crates/bench/scripts/copy_duckdb.py target/release/albireo --megabytes 200 --runs 5

The file has the same bytes in every run (seed 1). Each run is a new process with a new database in memory; what is
timed is the statement alone, as the program itself reports it (`\\timing`) or as measured around the call (DuckDB).
Prints the median and all runs, and fails if the two disagree on the number of rows or on their sum.
"""

import argparse
import os
import random
import re
import statistics
import subprocess
import tempfile
import time

TABLE = "CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR(40), amount NUMERIC(12,2), day DATE, note TEXT)"
CHECK = "SELECT count(*), sum(amount) FROM t"


def write_file(path: str, megabytes: int) -> None:
    draw = random.Random(1)
    notes = ["", "urgent", '"quoted, with a comma"', "a somewhat longer note about nothing in particular"]
    with open(path, "w") as file:
        row = 0
        while file.tell() < megabytes * 1_000_000:
            lines = []
            for _ in range(10_000):
                day = f"20{draw.randrange(10, 25)}-{draw.randrange(1, 13):02}-{draw.randrange(1, 29):02}"
                amount = f"{draw.randrange(10**7)}.{draw.randrange(100):02}"
                lines.append(f"{row},customer {draw.randrange(10**6)},{amount},{day},{draw.choice(notes)}\n")
                row += 1
            file.write("".join(lines))


def albireo(program: str, path: str) -> tuple[float, str]:
    script = f"{TABLE};\n\\timing on\nCOPY t FROM '{path}';\n\\timing off\n\\format csv\n{CHECK};\n"
    ran = subprocess.run([program, "shell"], input=script, capture_output=True, text=True, check=True)
    taken = re.search(r"Time: ([\d.]+) ms", ran.stdout + ran.stderr)
    if taken is None:
        raise SystemExit(f"no time in the shell's output:\n{ran.stdout}{ran.stderr}")
    return float(taken.group(1)) / 1000, ran.stdout.strip().splitlines()[-1]


def duckdb(path: str, threads: int) -> tuple[float, str]:
    import duckdb as library

    connection = library.connect(config={"threads": threads})
    connection.execute(TABLE)
    begin = time.perf_counter()
    connection.execute(f"COPY t FROM '{path}' (HEADER false)")
    taken = time.perf_counter() - begin
    count, total = connection.execute(CHECK).fetchone()
    return taken, f"{count},{total}"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("program", help="albireo, built with --release")
    arguments.add_argument("--megabytes", type=int, default=200)
    arguments.add_argument("--runs", type=int, default=5)
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "t.csv")
        write_file(path, asked.megabytes)
        systems = {
            "albireo": lambda: albireo(asked.program, path),
            "duckdb": lambda: duckdb(path, os.cpu_count() or 1),
        }
        answers = set()
        for name, run in systems.items():
            times = []
            for _ in range(asked.runs):
                taken, answer = run()
                times.append(taken)
                answers.add(answer)
            shown = ", ".join(f"{taken:.2f}" for taken in times)
            print(f"{name}: median {statistics.median(times):.2f} s of {shown}")
        if len(answers) != 1:
            raise SystemExit(f"the systems disagree: {answers}")
        print(f"rows and sum: {answers.pop()}")


if __name__ == "__main__":
    main()
