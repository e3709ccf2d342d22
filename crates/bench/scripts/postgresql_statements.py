#!/usr/bin/env python3
"""TPC-C statement by statement in PostgreSQL 15: transactions per second of CPU time, to compare with
`albireo bench tpcc --procedures statements`.

    postgresql_statements.py [-w WAREHOUSES] [-s SECONDS] [-u WARM-UP SECONDS]

Makes a cluster in a temporary directory, as postgresql_tpcc.sh does, and removes it whatever happens. One client,
pgbench over a Unix socket, sends the five transactions between BEGIN and COMMIT as prepared statements, at the level
SERIALIZABLE. An order has ten lines, and customers are found by their number. In PostgreSQL's favour: the data fits into
shared_buffers, and nothing is synchronised to disk. The CPU time is that of the server process and of pgbench. Prints
one line of JSON.
"""

import argparse
import json
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BIN = pathlib.Path("/usr/lib/postgresql/15/bin")
SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{directory}'
timezone = 'UTC'
shared_buffers = '{buffers}MB'
maintenance_work_mem = '256MB'
fsync = off
synchronous_commit = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
max_wal_size = '64GB'
checkpoint_timeout = '1d'
autovacuum = off
jit = off
max_parallel_workers_per_gather = 0
default_transaction_isolation = 'serializable'
"""
ITEMS, CUSTOMERS, DISTRICTS = 100_000, 3_000, 10

HEAD = """\\set w random(1, {warehouses})
\\set d random(1, 10)
\\set c random(1, 3000)
"""
LINE = """\\set i random(1, 100000)
\\set q random(1, 10)
SELECT i_name, i_price AS price, i_data LIKE '%ORIGINAL%' AS original FROM item WHERE i_id = :i \\gset
UPDATE stock SET s_quantity = CASE WHEN s_quantity - :q >= 10 THEN s_quantity - :q ELSE s_quantity - :q + 91 END,
    s_ytd = s_ytd + :q, s_order_cnt = s_order_cnt + 1 WHERE s_w_id = :w AND s_i_id = :i
    RETURNING s_quantity, s_data LIKE '%ORIGINAL%' AS brand, s_dist_01 AS dist \\gset
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity,
    ol_amount, ol_dist_info) VALUES (:o, :d, :w, {number}, :i, :w, NULL, :q, :price::numeric * :q, :dist);
"""
NEW_ORDER = HEAD + """BEGIN;
SELECT w_tax FROM warehouse WHERE w_id = :w;
UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = :w AND d_id = :d
    RETURNING d_next_o_id - 1 AS o, d_tax AS tax \\gset
{lines}INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
    VALUES (:o, :d, :w, :c, now(), NULL, 10, 1);
INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (:o, :d, :w);
SELECT c_last, c_credit, c_discount FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
COMMIT;
"""
PAYMENT = HEAD + """\\set a random(100, 500000)
BEGIN;
UPDATE warehouse SET w_ytd = w_ytd + :a / 100.0 WHERE w_id = :w
    RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip;
UPDATE district SET d_ytd = d_ytd + :a / 100.0 WHERE d_w_id = :w AND d_id = :d
    RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip;
UPDATE customer SET c_balance = c_balance - :a / 100.0, c_ytd_payment = c_ytd_payment + :a / 100.0,
    c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c
    RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit,
        c_credit_lim, c_discount, c_balance;
INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
    VALUES (:c, :d, :w, :d, :w, now(), :a / 100.0, 'warehouse    district');
COMMIT;
"""
ORDER_STATUS = HEAD + """BEGIN;
SELECT c_first, c_middle, c_last, c_balance FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
SELECT max(o_id) AS o FROM orders WHERE o_w_id = :w AND o_d_id = :d AND o_c_id = :c \\gset
SELECT ol_supply_w_id, ol_i_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
    WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :o ORDER BY ol_number;
COMMIT;
"""
DISTRICT = """SELECT coalesce(min(no_o_id), 0) AS o FROM new_order WHERE no_w_id = :w AND no_d_id = {d} \\gset
DELETE FROM new_order WHERE no_w_id = :w AND no_d_id = {d} AND no_o_id = :o;
UPDATE orders SET o_carrier_id = 5 WHERE o_w_id = :w AND o_d_id = {d} AND o_id = :o;
SELECT coalesce(sum(ol_amount), 0) AS total FROM order_line WHERE ol_w_id = :w AND ol_d_id = {d} AND ol_o_id = :o \\gset
UPDATE order_line SET ol_delivery_d = now() WHERE ol_w_id = :w AND ol_d_id = {d} AND ol_o_id = :o;
UPDATE customer SET c_balance = c_balance + :total, c_delivery_cnt = c_delivery_cnt + 1
    WHERE c_w_id = :w AND c_d_id = {d} AND c_id = :c;
"""
DELIVERY = HEAD + "BEGIN;\n{districts}COMMIT;\n"
STOCK_LEVEL = HEAD + """\\set t random(10, 20)
BEGIN;
SELECT d_next_o_id AS n FROM district WHERE d_w_id = :w AND d_id = :d \\gset
SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = :w AND s_i_id = ol_i_id
    WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id >= :n - 20 AND ol_o_id < :n AND s_quantity < :t;
COMMIT;
"""


def scripts(warehouses):
    """The five transactions by their share of a hundred."""
    lines = "".join(LINE.format(number=number) for number in range(1, 11))
    districts = "".join(DISTRICT.format(d=d) for d in range(1, DISTRICTS + 1))
    texts = {
        45: NEW_ORDER.replace("{lines}", lines),
        43: PAYMENT,
        4: ORDER_STATUS,
        5: DELIVERY.replace("{districts}", districts),
        3: STOCK_LEVEL,
    }
    return {share: text.replace("{warehouses}", str(warehouses)) for share, text in texts.items()}


def ticks(pid):
    """CPU time of a process's children that have ended, in ticks."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[13]) + int(fields[14])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-w", type=int, default=5, dest="warehouses")
    parser.add_argument("-s", type=int, default=20, dest="seconds")
    parser.add_argument("-u", type=int, default=5, dest="warm_up")
    args = parser.parse_args()
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    directory = pathlib.Path(tempfile.mkdtemp(prefix="postgresql_statements."))
    directory.chmod(0o755)
    data = directory / "data"
    if user:
        shutil.chown(directory, "postgres")
    try:
        init = [BIN / "initdb", "-D", data, "-U", "tpcc", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        subprocess.run([*user, *init], check=True, stdout=subprocess.DEVNULL)
        settings = SETTINGS.format(directory=directory, buffers=512 + 320 * args.warehouses)
        with open(data / "postgresql.conf", "a", encoding="utf-8") as file:
            file.write(settings)
        control = [*user, BIN / "pg_ctl", "-D", data]
        subprocess.run([*control, "-l", data / "log", "-w", "start"], check=True, stdout=subprocess.DEVNULL)
        psql = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", directory, "-U", "tpcc", "-d", "postgres"]
        values = {"warehouses": args.warehouses, "items": ITEMS, "customers": CUSTOMERS, "delivered": 2_100}
        variables = [part for name, value in values.items() for part in ("-v", f"{name}={value}")]
        files = [HERE / "../sql/tpcc_postgresql_schema.sql", HERE / "postgresql_tpcc_population.sql"]
        load = [part for file in files for part in ("-f", file)]
        subprocess.run([*psql, "-o", "/dev/null", *variables, *load, "-c", "VACUUM (FREEZE, ANALYZE)"], check=True)
        bench = [BIN / "pgbench", "-h", directory, "-U", "tpcc", "-n", "-M", "prepared", "-c", "1"]
        for number, (share, text) in enumerate(scripts(args.warehouses).items()):
            path = directory / f"{number}.sql"
            path.write_text(text)
            bench += ["-f", f"{path}@{share}"]
        server = int((data / "postmaster.pid").read_text().split()[0])
        subprocess.run([*bench, "-T", str(args.warm_up), "postgres"], check=True, stdout=subprocess.DEVNULL)
        before, used = ticks(server), resource.getrusage(resource.RUSAGE_CHILDREN)
        ran = subprocess.run([*bench, "-T", str(args.seconds), "postgres"], check=True, capture_output=True, text=True)
        after, now = ticks(server), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = next(line for line in ran.stdout.splitlines() if "transactions actually processed" in line)
        transactions = int(done.split(":")[1].split("/")[0])
        client = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
        cpu = (after - before) / os.sysconf("SC_CLK_TCK")
        print(json.dumps({
            "system": "PostgreSQL 15, statement by statement",
            "warehouses": args.warehouses,
            "seconds": args.seconds,
            "transactions": transactions,
            "server_cpu_seconds": round(cpu, 2),
            "client_cpu_seconds": round(client, 2),
            "transactions_per_cpu_second": round(transactions / (cpu + client), 1),
            "transactions_per_server_cpu_second": round(transactions / cpu, 1),
        }))
    finally:
        if (data / "postmaster.pid").exists():
            subprocess.run([*user, BIN / "pg_ctl", "-D", data, "-m", "immediate", "stop"], stdout=subprocess.DEVNULL)
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
