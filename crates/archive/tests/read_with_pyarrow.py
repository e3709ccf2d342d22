"""Reads an archive's files with pyarrow (and DuckDB if it is there) and prints what it finds.

usage: read_with_pyarrow.py ARCHIVE_DIRECTORY NUMBER

Prints for each table its columns and rows, one line each; `crates/archive/tests/archive/python.rs` compares.
Exit status 3: pyarrow is missing.
"""

import base64
import json
import os
import re
import sys

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.ipc
except ImportError:
    print("pyarrow is missing", file=sys.stderr)
    sys.exit(3)


INTEGERS = {"smallint": pa.int16(), "integer": pa.int32(), "bigint": pa.int64()}


def plain(field, array):
    """A column of a frozen chunk in the type that other files have it in."""
    valid = None
    if pa.types.is_struct(array.type):
        valid, array = array.is_valid(), array.field(0)
    if pa.types.is_run_end_encoded(array.type):
        # It has no kernel for the runs of a dictionary's values.
        values = array.values
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        array = pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(array.run_ends, values))
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if valid is not None:
        array = pc.if_else(valid, array, pa.scalar(None, array.type))
    sql = field.metadata[b"albireo.type"].decode()
    numeric = re.fullmatch(r"numeric\((\d+),(\d+)\)", sql)
    wanted = pa.decimal128(int(numeric[1]), int(numeric[2])) if numeric else INTEGERS.get(sql, array.type)
    return array.cast(wanted)


def live(frozen, part):
    """The rows of a frozen chunk that the manifest does not call invalid."""
    invalid = frozen["invalid"]
    if isinstance(invalid, str):
        bits = base64.b64decode(invalid)
        dead = {row for row in range(8 * len(bits)) if bits[row // 8] >> row % 8 & 1}
    else:
        dead = {row for first, last in invalid for row in range(first, last + 1)}
    assert part.num_rows == frozen["slots"], frozen
    (batch,) = part.to_batches()
    columns = [plain(field, array) for field, array in zip(part.schema, batch.columns)]
    fields = [
        pa.field(field.name, array.type, field.nullable, {b"albireo.type": field.metadata[b"albireo.type"]})
        for field, array in zip(part.schema, columns)
    ]
    metadata = {key: part.schema.metadata[key] for key in (b"albireo.schema", b"albireo.table")}
    whole = pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata))
    return whole.take([row for row in range(whole.num_rows) if row not in dead])


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
            if "frozen" in entry:
                part = live(entry["frozen"], part)
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
