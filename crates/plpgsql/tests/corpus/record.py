#!/usr/bin/env python3
"""Records what PostgreSQL 15 says to the files of this directory. README.md has their format.

    record.py [--check] [FILE.sql ...]        all files when none is named

Asks the server that psql finds by PGHOST, PGPORT, PGUSER and PGDATABASE, in a schema of its own for
each file, which is dropped afterwards. The database should have the collation "C". Answers replace the
expectations in the files; what changed in kind is listed, to be read before it is committed. With
--check nothing is written, and a difference is a failure.
"""

import os
import pathlib
import subprocess
import sys

MARK = "\x01"
FIELD = "\x1f"
SCHEMA = "corpus"
OPTIONS = (
    "-c client_min_messages=error -c extra_float_digits=1 -c datestyle=ISO -c intervalstyle=postgres"
    " -c statement_timeout=10s -c lc_messages=C"
)


class Record:
    """One statement, with the comments before it and what it is expected to give."""

    def __init__(self, line, preamble, head, body):
        self.line, self.preamble, self.head = line, preamble, head
        end = body.index("----") if "----" in body else len(body)
        self.sql, self.result = body[:end], body[end + 1 :]
        words = head.split(" ")
        self.is_query = words[0] == "query"
        fits = (
            head in ("query", "query unordered", "statement ok")
            or len(words) == 3
            and words[:2] in (["statement", "count"], ["statement", "error"])
        )
        if not fits or not self.sql:
            sys.exit(f'line {line}: "{head}" is no record')

    def __str__(self):
        lines = self.preamble + [self.head] + self.sql
        if self.is_query:
            lines += ["----"] + self.result
        return "".join(line + "\n" for line in lines)


def parse(text):
    """The records of a file, and what follows the last one."""
    lines, records, at = text.split("\n")[:-1], [], 0
    while True:
        start = at
        while at < len(lines) and (not lines[at] or lines[at].startswith("#")):
            at += 1
        preamble = lines[start:at]
        if at == len(lines):
            return records, preamble
        line, body = at + 1, []
        while at < len(lines) and lines[at]:
            body.append(lines[at])
            at += 1
        records.append(Record(line, preamble, body[0], body[1:]))


def cell(text):
    """A value as files show it."""
    return text.strip().replace("\n", "\\n") or "(empty)"


def ask(records):
    """The answers to the records: (state, message), count, columns, rows."""
    script = [
        f"\\pset fieldsep '\\037'\n\\pset recordsep '\\036'\n\\pset null 'NULL'\n"
        f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE;\nCREATE SCHEMA {SCHEMA};\nSET search_path = {SCHEMA};\n"
    ]
    for record in records:
        sql = "\n".join(record.sql)
        script.append(f"\\echo '{MARK}'\n")
        if record.is_query:
            script.append(f"{sql} \\gdesc\n")
        script.append(f"\\echo '{MARK}'\n{sql};\n\\echo '{MARK}':SQLSTATE :ROW_COUNT :LAST_ERROR_MESSAGE\n")
    script.append(f"\\echo '{MARK}'\nROLLBACK;\nDROP SCHEMA {SCHEMA} CASCADE;\n")
    environment = {**os.environ, "PGTZ": "UTC", "PGOPTIONS": OPTIONS, "PGCLIENTENCODING": "UTF8"}
    command = ["psql", "-X", "-q", "-A", "-t"]
    done = subprocess.run(command, input="".join(script).encode(), capture_output=True, env=environment)
    parts = done.stdout.decode().split(MARK)[1:-1]
    if len(parts) != 3 * len(records):
        sys.exit(f"psql gave {len(parts)} parts for {len(records)} records:\n{done.stderr.decode()}")
    return [answer(*parts[n : n + 3]) for n in range(0, len(parts), 3)]


def answer(columns, rows, end):
    state, count, message = (end.strip() + "  ").split(" ", 2)
    split = lambda text: text.strip("\n").split("\x1e") if text.strip("\n") else []
    columns = [column.strip("\n").replace(FIELD, " ") for column in split(columns)]
    # psql ends the last row with a line feed; a row of one empty text is that line feed alone.
    rows = rows.removeprefix("\n").removesuffix("\n")
    rows = [[cell(value) for value in row.split(FIELD)] for row in rows.split("\x1e")] if rows or count == "1" else []
    return (state, message.strip()), count, columns, rows


def update(record, said):
    """Gives the record PostgreSQL's answer; the remark is what deserves a look."""
    (state, message), count, columns, rows = said
    old = record.head
    if state != "00000":
        record.head, record.is_query = f"statement error {state}", False
    elif record.is_query:
        if int(count) != len(rows) and not record.sql[0].startswith("CALL"):
            sys.exit(f"line {record.line}: {count} rows, but {len(rows)} were read")
        record.result = [" | ".join(row) for row in [columns] + rows]
        if [line.split(" | ") for line in record.result] != [columns] + rows:
            sys.exit(f"line {record.line}: a value cannot be told from its neighbours")
    elif old.startswith("statement count"):
        record.head = f"statement count {count}"
    else:
        record.head = "statement ok"
    same = old == record.head or old in ("statement count ?", "statement error ?") and old[:11] == record.head[:11]
    return None if same else f"line {record.line}: {old} -> {record.head} {message}"


def main():
    arguments = sys.argv[1:]
    check = "--check" in arguments
    names = [name for name in arguments if name != "--check"]
    directory = pathlib.Path(__file__).parent
    files = [pathlib.Path(name) for name in names] or sorted(directory.glob("*.sql"))
    total, wrong = 0, []
    for file in files:
        old = file.read_text(encoding="utf-8")
        records, rest = parse(old)
        total += len(records)
        for record, said in zip(records, ask(records)):
            remark = update(record, said)
            if remark:
                print(f"{file.name}, {remark}")
        new = "".join(map(str, records)) + "".join(line + "\n" for line in rest)
        if new != old:
            wrong.append(file.name)
            if not check:
                file.write_text(new, encoding="utf-8")
    print(f"{total} records in {len(files)} files; {'wrong' if check else 'changed'}: {', '.join(wrong) or 'none'}")
    sys.exit(1 if check and wrong else 0)


main()
