#!/usr/bin/env bash
# TPC-C by PL/pgSQL in PostgreSQL 15: transactions per second of CPU time of the process that runs them.
#
#   postgresql_tpcc.sh [-w WAREHOUSES] [-s SECONDS] [-u WARM-UP SECONDS]
#
# Installs PostgreSQL 15 if it is missing (Debian or Ubuntu, as root), and makes a cluster of its own in a
# temporary directory, which it removes whatever happens. Schema and procedures are those of
# crates/bench/sql, the population is that of clause 4.3.3, the terminal runs inside the server
# (postgresql_tpcc_driver.sql). Everything is in PostgreSQL's favour: the data fits into shared_buffers,
# nothing is synchronised to disk, nothing runs beside it, no statement crosses a socket, and the log
# writer's and checkpointer's time is not counted.
#
# Prints one line of JSON. `transactions_per_cpu_second` has the terminal's own time in it,
# `..._without_terminal` has it taken out: what making the inputs costs is measured by itself.
set -euo pipefail

warehouses=5
seconds=30
warm_up=10
while getopts "w:s:u:h" option; do
    case "$option" in
        w) warehouses=$OPTARG ;;
        s) seconds=$OPTARG ;;
        u) warm_up=$OPTARG ;;
        h) sed -n '2,/^set/{/^#/p}' "$0"; exit 0 ;;
        *) exit 2 ;;
    esac
done

items=100000
customers=3000
delivered=2100

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# The directory of PostgreSQL 15's programs.
programs() {
    local directory
    for directory in /usr/lib/postgresql/15/bin "$(pg_config --bindir 2>/dev/null || true)"; do
        if [[ -x $directory/initdb && $("$directory/postgres" --version) == *" 15."* ]]; then
            echo "$directory"
            return
        fi
    done
    return 1
}

if ! bin=$(programs); then
    echo "installing PostgreSQL 15" >&2
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y postgresql-15; } >&2
    bin=$(programs)
fi

# The server refuses to run as root.
as=()
if [[ $(id -u) == 0 ]]; then
    as=(runuser -u postgres --)
fi

directory=$(mktemp -d "${TMPDIR:-/tmp}/postgresql_tpcc.XXXXXX")
cleanup() {
    if [[ -f $directory/data/postmaster.pid ]]; then
        "${as[@]}" "$bin/pg_ctl" -D "$directory/data" -m immediate stop >&2 || true
    fi
    rm -rf "$directory"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
if [[ ${#as[@]} != 0 ]]; then
    chown postgres "$directory"
fi
cd "$directory"

# Names are compared by their bytes, as in Albireo. Trust reaches no further than the directory.
"${as[@]}" "$bin/initdb" -D "$directory/data" -U tpcc -A trust -E UTF8 --locale=C --no-sync >&2
cat >"$directory/settings" <<END
listen_addresses = ''
unix_socket_directories = '$directory'
timezone = 'UTC'
shared_buffers = '$((512 + 320 * warehouses))MB'
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
END
"${as[@]}" tee -a "$directory/data/postgresql.conf" <"$directory/settings" >/dev/null
"${as[@]}" "$bin/pg_ctl" -D "$directory/data" -l "$directory/data/log" -w start >&2

sql=("$bin/psql" -X -q -A -t -F ' ' -v ON_ERROR_STOP=1 -h "$directory" -U tpcc -d postgres)
echo "loading $warehouses warehouses" >&2
"${sql[@]}" -o /dev/null \
    -v "warehouses=$warehouses" -v "items=$items" -v "customers=$customers" -v "delivered=$delivered" \
    -f "$here/../sql/tpcc_postgresql_schema.sql" \
    -f "$here/../sql/tpcc_procedures.sql" \
    -f "$here/postgresql_tpcc_driver.sql" \
    -f "$here/postgresql_tpcc_population.sql" \
    -c "VACUUM (FREEZE, ANALYZE)" \
    -c "CHECKPOINT"

# One process for all three, so that its plans are made when it is measured.
echo "running $warm_up + $seconds seconds" >&2
terminal="CALL terminal($warehouses, $items, $customers"
"${sql[@]}" -o "$directory/result" \
    -c "$terminal, $warm_up, true)" -c "$terminal, $seconds, true)" -c "$terminal, 2, false)"
{
    read -r _
    read -r transactions new_orders rolled_back ticks
    read -r inputs _ _ input_ticks
} <"$directory/result"

version=$("${sql[@]}" -c "SHOW server_version")
awk -v version="${version%% *}" -v warehouses="$warehouses" -v seconds="$seconds" \
    -v transactions="$transactions" -v new_orders="$new_orders" -v rolled_back="$rolled_back" \
    -v cpu="$ticks" -v inputs="$inputs" -v input_cpu="$input_ticks" -v hertz="$(getconf CLK_TCK)" '
BEGIN {
    cpu /= hertz
    terminal = input_cpu / hertz / inputs * transactions
    printf "{\"system\":\"PostgreSQL %s\",\"warehouses\":%d,\"seconds\":%d,", version, warehouses, seconds
    printf "\"transactions\":%d,\"new_orders\":%d,\"rolled_back\":%d,", transactions, new_orders, rolled_back
    printf "\"cpu_seconds\":%.2f,\"transactions_per_cpu_second\":%.1f,", cpu, transactions / cpu
    printf "\"transactions_per_cpu_second_without_terminal\":%.1f}\n", transactions / (cpu - terminal)
}'
