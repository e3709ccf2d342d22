#!/usr/bin/env python3
"""Times loads into a table with a primary key: Albireo's shell against DuckDB.

    python3 -m venv target/venv && target/venv/bin/pip install duckdb tpchgen-cli
    target/venv/bin/python crates/bench/scripts/copy_duckdb.py target/release/albireo

Three loads: COPY of a CSV file of 200 MB; COPY of TPC-H lineitem at scale 1, as Parquet; INSERT ... SELECT of
the same rows from another table. The files have the same bytes in every run. Each run is a new process with a new
database in memory; the systems take turns. What is timed is the statement alone, as the program itself reports it
(`\\timing`) or as measured around the call (DuckDB). Prints the medians and all runs, and fails if the systems disagree
on the number of rows or on their sums. Several programs may be named.
"""

import argparse
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

COLUMNS = "id BIGINT PRIMARY KEY, name VARCHAR(40), amount NUMERIC(12,2), day DATE, note TEXT"
LINEITEM = """l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INTEGER, l_quantity NUMERIC(15,2),
    l_extendedprice NUMERIC(15,2), l_discount NUMERIC(15,2), l_tax NUMERIC(15,2), l_returnflag VARCHAR(1),
    l_linestatus VARCHAR(1), l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct VARCHAR(25),
    l_shipmode VARCHAR(10), l_comment VARCHAR(44), PRIMARY KEY (l_orderkey, l_linenumber)"""


class Load:
    """What is done before, what is timed, and what must be the same everywhere."""

    def __init__(self, before: list[str], timed: str, check: str, timed_by_duckdb: str | None = None) -> None:
        self.before, self.timed, self.check = before, timed, check
        self.timed_by_duckdb = timed_by_duckdb or timed


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


def write_lineitem(directory: str) -> str:
    beside = pathlib.Path(sys.executable).with_name("tpchgen-cli")
    program = str(beside) if beside.exists() else "tpchgen-cli"
    command = [program, "parquet", "-s", "1", "--tables", "lineitem", "--output-dir", directory]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return os.path.join(directory, "lineitem.parquet")


def albireo(program: str, load: Load) -> tuple[float, str]:
    before = "".join(f"{statement};\n" for statement in load.before)
    script = f"{before}\\timing on\n{load.timed};\n\\timing off\n\\format csv\n{load.check};\n"
    ran = subprocess.run([program, "shell"], input=script, capture_output=True, text=True, check=True)
    taken = re.search(r"Time: ([\d.]+) ms", ran.stdout + ran.stderr)
    if taken is None:
        raise SystemExit(f"no time in the shell's output:\n{ran.stdout}{ran.stderr}")
    return float(taken.group(1)) / 1000, ran.stdout.strip().splitlines()[-1]


def duckdb(load: Load) -> tuple[float, str]:
    import duckdb as library

    connection = library.connect(config={"threads": os.cpu_count() or 1})
    for statement in load.before:
        connection.execute(statement)
    begin = time.perf_counter()
    connection.execute(load.timed_by_duckdb)
    taken = time.perf_counter() - begin
    return taken, ",".join(str(value) for value in connection.execute(load.check).fetchone())


def loads(directory: str, megabytes: int) -> dict[str, Load]:
    csv = os.path.join(directory, "t.csv")
    write_file(csv, megabytes)
    parquet = write_lineitem(directory)
    sums = "SELECT count(*), sum(l_extendedprice), sum(l_linenumber) FROM lineitem"
    table = f"CREATE TABLE lineitem ({LINEITEM})"
    other = f"CREATE TABLE other ({LINEITEM})"
    return {
        f"COPY of {megabytes} MB of CSV": Load(
            [f"CREATE TABLE t ({COLUMNS})"],
            f"COPY t FROM '{csv}'",
            "SELECT count(*), sum(amount) FROM t",
            f"COPY t FROM '{csv}' (HEADER false)",
        ),
        "COPY of lineitem, Parquet": Load([table], f"COPY lineitem FROM '{parquet}' (FORMAT parquet)", sums),
        "INSERT ... SELECT of lineitem": Load(
            [other, f"COPY other FROM '{parquet}' (FORMAT parquet)", table],
            "INSERT INTO lineitem SELECT * FROM other",
            sums,
        ),
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("programs", nargs="+", help="albireo, built with --release")
    arguments.add_argument("--megabytes", type=int, default=200)
    arguments.add_argument("--runs", type=int, default=5)
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        for what, load in loads(directory, asked.megabytes).items():
            print(what, flush=True)
            systems = {program: lambda load, program=program: albireo(program, load) for program in asked.programs}
            systems["duckdb"] = duckdb
            times: dict[str, list[float]] = {name: [] for name in systems}
            answers = set()
            for _ in range(asked.runs):
                for name, run in systems.items():
                    taken, answer = run(load)
                    times[name].append(taken)
                    answers.add(answer)
            for name, all_times in times.items():
                shown = ", ".join(f"{taken:.2f}" for taken in all_times)
                print(f"  {name}: median {statistics.median(all_times):.2f} s of {shown}", flush=True)
            if len(answers) != 1:
                raise SystemExit(f"the systems disagree: {answers}")
            print(f"  rows and sums: {answers.pop()}", flush=True)


if __name__ == "__main__":
    main()
