"""Reads an archive's files with pyarrow (and DuckDB if it is there) and prints what it finds.

usage: read_with_pyarrow.py ARCHIVE_DIRECTORY NUMBER

Prints for each table its columns and rows, one line each; `crates/archive/tests/archive/python.rs` compares.
Exit status 3: pyarrow is missing.
"""

import json
import os
import sys

try:
    import pyarrow as pa
    import pyarrow.ipc
except ImportError:
    print("pyarrow is missing", file=sys.stderr)
    sys.exit(3)


def main():
    directory, number = sys.argv[1], int(sys.argv[2])
    with open(os.path.join(directory, f"{number:010}", "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)["manifest"]
    for table in manifest["tables"]:
        parts = []
        for entry in table["files"]:
            with pa.memory_map(os.path.join(directory, entry["path"])) as source:
                part = pa.ipc.open_file(source).read_all()
            part.validate(full=True)
            assert part.num_rows == entry["rows"], entry
            parts.append(part)
        rows = pa.concat_tables(parts)
        metadata = {key.decode(): value.decode() for key, value in rows.schema.metadata.items()}
        print(f"table {metadata['albireo.schema']}.{metadata['albireo.table']}: {rows.num_rows} rows")
        for field in rows.schema:
            null = "" if field.nullable else " not null"
            print(f"{field.name}: {field.type}{null} ({field.metadata[b'albireo.type'].decode()})")
        for row in rows.to_pylist():
            print(" | ".join(repr(value) for value in row.values()))
        try:
            import duckdb
        except ImportError:
            print("duckdb is missing", file=sys.stderr)
            continue
        ((count,),) = duckdb.sql("select count(*) from rows").fetchall()
        assert count == rows.num_rows, count


main()
