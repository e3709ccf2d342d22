# FOR over the rows of queries.

statement ok
CREATE TABLE emp (id integer PRIMARY KEY, name varchar(10) NOT NULL, dept integer, pay numeric(8,2))

statement count 6
INSERT INTO emp VALUES (1, 'ann', 10, 100), (2, 'bob', 10, 250.50), (3, 'cid', 20, 90), (4, 'dan', NULL, 40), (5, 'eve', 20, NULL), (6, 'fay', 30, 77.77)

statement ok
CREATE FUNCTION by_record() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r RECORD;
    s text := '';
BEGIN
    FOR r IN SELECT id, name FROM emp ORDER BY name DESC LOOP
        s := s || r.id || r.name || ' ';
    END LOOP;
    RETURN s;
END;
$$

query
SELECT by_record()
----
by_record text
6fay 5eve 4dan 3cid 2bob 1ann

statement ok
CREATE FUNCTION by_row(p_dept integer) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    e emp%ROWTYPE;
    total numeric(10,2) := 0;
BEGIN
    FOR e IN SELECT * FROM emp WHERE dept = p_dept LOOP
        total := total + coalesce(e.pay, 0);
    END LOOP;
    RETURN total;
END;
$$

query
SELECT by_row(10), by_row(20), by_row(99), by_row(NULL)
----
by_row numeric | by_row numeric | by_row numeric | by_row numeric
350.50 | 90.00 | 0.00 | 0.00

statement ok
CREATE FUNCTION by_variables() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    i integer;
    n text;
    s text := '';
BEGIN
    FOR i, n IN SELECT id, upper(name) FROM emp WHERE id < 3 ORDER BY id LOOP
        s := s || i || n;
    END LOOP;
    RETURN s || coalesce(i, -1);
END;
$$

query
SELECT by_variables()
----
by_variables text
1ANN2BOB2

# Without rows the variables are NULL afterwards.

statement ok
CREATE FUNCTION no_rows() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    i integer := 7;
BEGIN
    FOR i IN SELECT id FROM emp WHERE id > 100 LOOP
        RETURN 'never';
    END LOOP;
    RETURN coalesce(i::text, 'null') || ' ' || FOUND;
END;
$$

query
SELECT no_rows()
----
no_rows text
null false

statement ok
CREATE FUNCTION found_after_loop(p integer) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    i integer;
BEGIN
    FOR i IN SELECT id FROM emp WHERE id < p LOOP
        PERFORM 1 FROM emp WHERE id = -1;
    END LOOP;
    RETURN FOUND;
END;
$$

query
SELECT found_after_loop(3), found_after_loop(0)
----
found_after_loop boolean | found_after_loop boolean
t | f

statement ok
CREATE FUNCTION exit_early(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r RECORD;
    s text := '';
BEGIN
    FOR r IN SELECT id FROM emp ORDER BY id LOOP
        CONTINUE WHEN r.id = 2;
        EXIT WHEN r.id > p;
        s := s || r.id;
    END LOOP;
    RETURN s || '/' || r.id;
END;
$$

query
SELECT exit_early(4), exit_early(100)
----
exit_early text | exit_early text
134/5 | 13456/6

statement ok
CREATE FUNCTION nested() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    d RECORD;
    e RECORD;
    s text := '';
BEGIN
    FOR d IN SELECT DISTINCT dept FROM emp WHERE dept IS NOT NULL ORDER BY dept LOOP
        s := s || d.dept || ':';
        FOR e IN SELECT name FROM emp WHERE dept = d.dept ORDER BY id LOOP
            s := s || e.name || ',';
        END LOOP;
        s := s || ' ';
    END LOOP;
    RETURN s;
END;
$$

query
SELECT nested()
----
nested text
10:ann,bob, 20:cid,eve, 30:fay,

# The loop sees the table as it was when it began.

statement ok
CREATE FUNCTION changes_behind_loop() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r RECORD;
    n integer := 0;
BEGIN
    FOR r IN SELECT * FROM emp WHERE dept = 10 ORDER BY id LOOP
        n := n + 1;
        INSERT INTO emp VALUES (r.id + 100, r.name || '2', 10, r.pay);
        UPDATE emp SET pay = pay + 1 WHERE dept = 10;
        DELETE FROM emp WHERE id = 3;
    END LOOP;
    RETURN n || ' ' || (SELECT count(*) FROM emp) || ' ' || (SELECT sum(pay) FROM emp WHERE dept = 10);
END;
$$

query
SELECT changes_behind_loop()
----
changes_behind_loop text
2 7 708.00

query
SELECT * FROM emp ORDER BY id
----
id integer | name character varying(10) | dept integer | pay numeric(8,2)
1 | ann | 10 | 102.00
2 | bob | 10 | 252.50
4 | dan | NULL | 40.00
5 | eve | 20 | NULL
6 | fay | 30 | 77.77
101 | ann2 | 10 | 102.00
102 | bob2 | 10 | 251.50

statement ok
CREATE FUNCTION loop_over_update() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_id integer;
    v_pay numeric;
    s text := '';
BEGIN
    FOR v_id, v_pay IN UPDATE emp SET pay = 1 WHERE dept = 20 RETURNING id, pay LOOP
        s := s || v_id || '=' || v_pay || ' ';
    END LOOP;
    RETURN s;
END;
$$

query
SELECT loop_over_update()
----
loop_over_update text
5=1.00

statement ok
CREATE FUNCTION loop_over_delete() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    r RECORD;
    total integer := 0;
BEGIN
    FOR r IN DELETE FROM emp WHERE id > 100 RETURNING id LOOP
        total := total + r.id;
    END LOOP;
    RETURN total;
END;
$$

query
SELECT loop_over_delete()
----
loop_over_delete integer
203

query
SELECT count(*) FROM emp WHERE id > 100
----
count bigint
0

statement ok
CREATE FUNCTION loop_over_values() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    a integer;
    b text;
    s text := '';
BEGIN
    FOR a, b IN VALUES (1, 'x'), (2, 'y') LOOP
        s := s || a || b;
    END LOOP;
    FOR a IN SELECT g FROM generate_series(5, 7) AS g LOOP
        s := s || a;
    END LOOP;
    RETURN s;
END;
$$

query
SELECT loop_over_values()
----
loop_over_values text
1x2y567

statement ok
CREATE FUNCTION loop_over_groups() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r RECORD;
    s text := '';
BEGIN
    FOR r IN SELECT dept, count(*) AS n, sum(pay) AS total FROM emp GROUP BY dept ORDER BY dept LOOP
        s := s || coalesce(r.dept::text, '?') || ' ' || r.n || ' ' || coalesce(r.total::text, '-') || '; ';
    END LOOP;
    RETURN s;
END;
$$

query
SELECT loop_over_groups()
----
loop_over_groups text
10 2 354.50; 20 1 1.00; 30 1 77.77; ? 1 40.00;

statement ok
CREATE FUNCTION error_in_loop() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    r RECORD;
BEGIN
    FOR r IN SELECT id FROM emp ORDER BY id LOOP
        UPDATE emp SET pay = 100 / (r.id - 4) WHERE id = r.id;
    END LOOP;
    RETURN 1;
END;
$$

statement error 22012
SELECT error_in_loop()

query
SELECT * FROM emp ORDER BY id
----
id integer | name character varying(10) | dept integer | pay numeric(8,2)
1 | ann | 10 | 102.00
2 | bob | 10 | 252.50
4 | dan | NULL | 40.00
5 | eve | 20 | 1.00
6 | fay | 30 | 77.77

# More columns than variables are dropped.

statement ok
CREATE FUNCTION fewer_variables() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    a integer;
BEGIN
    FOR a IN SELECT id, name FROM emp WHERE id = 1 LOOP
        RETURN a;
    END LOOP;
    RETURN NULL;
END;
$$

query
SELECT fewer_variables()
----
fewer_variables integer
1
