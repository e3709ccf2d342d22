#!/usr/bin/env python3
"""Asks PostgreSQL 15 what routines and statements do, and fails where it says anything else than we do.

    against_postgresql.py [--statements] [SEEDS [FIRST]]        1000 and 1 if not given

Makes a cluster in a temporary directory, reached by a socket there alone, and starts it. Checks that the
answers in corpus/*.sql are PostgreSQL's; runs random routines in both (the test
`random_routines_come_to_the_same_in_postgresql`), and TPC-C from the same inputs
(`same_inputs_end_in_the_same_tables_as_in_postgresql`). With --statements it runs random queries and changes
instead, 40 of each by seed (`random_queries_give_the_same_in_postgresql`,
`random_changes_leave_the_same_in_postgresql`). Stops the cluster and removes it, whatever happens. As root it runs
the server as the user postgres, and installs PostgreSQL 15 by apt-get if it is missing.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{directory}'
timezone = 'UTC'
fsync = off
synchronous_commit = off
full_page_writes = off
jit = off
max_connections = 10
"""


def programs():
    """The directory of PostgreSQL 15's programs."""
    found = shutil.which("pg_config")
    asked = subprocess.run([found, "--bindir"], capture_output=True, text=True).stdout.strip() if found else ""
    for directory in ("/usr/lib/postgresql/15/bin", asked):
        server = pathlib.Path(directory) / "postgres"
        if directory and server.exists():
            version = subprocess.run([server, "--version"], capture_output=True, text=True).stdout
            if " 15." in version:
                return pathlib.Path(directory)
    return None


def installed():
    """As `programs`, which are installed if they can be."""
    if os.geteuid() == 0 and shutil.which("apt-get") and not programs():
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-q"], check=True, env=environment)
        subprocess.run(["apt-get", "install", "-qy", "postgresql-15"], check=True, env=environment)
    return programs() or sys.exit("PostgreSQL 15 is not installed (package postgresql-15)")


def main():
    statements = "--statements" in sys.argv
    given = [argument for argument in sys.argv[1:] if argument != "--statements"]
    seeds, first = (given + ["1000", "1"][len(given) :])[:2]
    binaries = installed()
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    directory = pathlib.Path(tempfile.mkdtemp(prefix="albireo_postgresql."))
    if user:
        shutil.chown(directory, "postgres")
    data = directory / "data"

    def run(*command):
        subprocess.run([*user, *command], check=True, cwd=directory, stdout=subprocess.DEVNULL)

    try:
        locale = ["-E", "UTF8", "--locale=C", "--lc-ctype=C.UTF-8", "--no-sync"]
        run(binaries / "initdb", "-D", data, "-U", "random", "-A", "trust", *locale)
        with open(data / "postgresql.conf", "a", encoding="utf-8") as settings:
            settings.write(SETTINGS.format(directory=directory))
        run(binaries / "pg_ctl", "-D", data, "-l", directory / "log", "-w", "start")
        environment = {
            **os.environ,
            "PGHOST": str(directory),
            "PGUSER": "random",
            "PGDATABASE": "postgres",
            "ALBIREO_TEST_POSTGRESQL": "1",
            "ALBIREO_CASES": seeds,
            "ALBIREO_SEED": first,
        }
        routines = ["--test", "random", "--test", "routines_agree_with_postgresql"]
        tests = ["--lib"] if statements else routines
        test = ["cargo", "test", "--workspace", *tests, "in_postgresql"]
        here = pathlib.Path(__file__).resolve().parent
        check = [sys.executable, here / "corpus" / "record.py", "--check"]
        status = 0 if statements else subprocess.run(check, env=environment).returncode
        status = subprocess.run(test, cwd=here, env=environment).returncode or status
    finally:
        if (data / "postmaster.pid").exists():
            run(binaries / "pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(directory)
    sys.exit(status)


main()
