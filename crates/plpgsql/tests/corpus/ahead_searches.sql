# Searches whose keys a loop knows before it begins: each finds what is there when its round comes, however
# many rows there are.

statement ok
CREATE TABLE part (w smallint NOT NULL, k integer NOT NULL, m integer NOT NULL, v numeric(8,2), seen_at timestamp, x integer, PRIMARY KEY (w, k, m))

statement ok
CREATE TABLE log (k integer, rows bigint, total numeric(12,2))

statement ok
CREATE FUNCTION fill() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM part; DELETE FROM log;
  FOR i IN 0 .. 20 LOOP
    FOR j IN 1 .. i LOOP
      INSERT INTO part VALUES (1, i, j, i + j * 0.25, NULL, j);
    END LOOP;
  END LOOP;
  RETURN 0;
END $$

query
SELECT fill()
----
fill integer
0

# None, one, sixteen, seventeen and more rows.
statement ok
CREATE FUNCTION sums(p_w smallint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE total numeric; many bigint;
BEGIN
  FOR i IN 0 .. 21 LOOP
    SELECT count(*), sum(v) INTO many, total FROM part WHERE w = p_w AND k = i;
    INSERT INTO log VALUES (i, many, total);
  END LOOP;
  RETURN 0;
END $$

query
SELECT sums(1::smallint)
----
sums integer
0

query
SELECT k, rows, total FROM log ORDER BY k
----
k integer | rows bigint | total numeric(12,2)
0 | 0 | NULL
1 | 1 | 1.25
2 | 2 | 4.75
3 | 3 | 10.50
4 | 4 | 18.50
5 | 5 | 28.75
6 | 6 | 41.25
7 | 7 | 56.00
8 | 8 | 73.00
9 | 9 | 92.25
10 | 10 | 113.75
11 | 11 | 137.50
12 | 12 | 163.50
13 | 13 | 191.75
14 | 14 | 222.25
15 | 15 | 255.00
16 | 16 | 290.00
17 | 17 | 327.25
18 | 18 | 366.75
19 | 19 | 408.50
20 | 20 | 452.50
21 | 0 | NULL

# Earlier rounds delete, insert and move rows of later ones; the change and the sum are for the same key.
statement ok
CREATE FUNCTION meanwhile(p_w smallint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE total numeric; many bigint; changed bigint;
BEGIN
  DELETE FROM log;
  FOR i IN 1 .. 12 LOOP
    SELECT count(*), sum(v) INTO many, total FROM part WHERE w = p_w AND k = i;
    UPDATE part SET seen_at = now() WHERE w = p_w AND k = i;
    GET DIAGNOSTICS changed = ROW_COUNT;
    INSERT INTO log VALUES (i, many * 100 + changed, total);
    IF i = 2 THEN DELETE FROM part WHERE w = p_w AND k = 5 AND m = 3; END IF;
    IF i = 3 THEN INSERT INTO part VALUES (p_w, 6, 99, 1000, NULL, 0); END IF;
    IF i = 4 THEN UPDATE part SET k = 10 WHERE w = p_w AND k = 8 AND m = 8; END IF;
    IF i = 5 THEN UPDATE part SET v = 0 WHERE w = p_w AND k = 9; END IF;
    IF i = 7 THEN DELETE FROM part WHERE w = p_w AND k = 11; END IF;
  END LOOP;
  RETURN 0;
EXCEPTION WHEN unique_violation THEN RETURN 1;
END $$

query
SELECT meanwhile(1::smallint)
----
meanwhile integer
1

query
SELECT k, rows, total FROM log ORDER BY k
----
k integer | rows bigint | total numeric(12,2)
0 | 0 | NULL
1 | 1 | 1.25
2 | 2 | 4.75
3 | 3 | 10.50
4 | 4 | 18.50
5 | 5 | 28.75
6 | 6 | 41.25
7 | 7 | 56.00
8 | 8 | 73.00
9 | 9 | 92.25
10 | 10 | 113.75
11 | 11 | 137.50
12 | 12 | 163.50
13 | 13 | 191.75
14 | 14 | 222.25
15 | 15 | 255.00
16 | 16 | 290.00
17 | 17 | 327.25
18 | 18 | 366.75
19 | 19 | 408.50
20 | 20 | 452.50
21 | 0 | NULL

query
SELECT fill()
----
fill integer
0

statement ok
UPDATE part SET m = m + 100 WHERE k = 10

query
SELECT meanwhile(1::smallint)
----
meanwhile integer
0

query
SELECT k, rows, total FROM log ORDER BY k
----
k integer | rows bigint | total numeric(12,2)
1 | 101 | 1.25
2 | 202 | 4.75
3 | 303 | 10.50
4 | 404 | 18.50
5 | 404 | 23.00
6 | 707 | 1041.25
7 | 707 | 56.00
8 | 707 | 63.00
9 | 909 | 0.00
10 | 1111 | 123.75
11 | 0 | NULL
12 | 1212 | 163.50

query
SELECT k, count(*), count(seen_at), sum(v) FROM part GROUP BY k ORDER BY k
----
k integer | count bigint | count bigint | sum numeric
1 | 1 | 1 | 1.25
2 | 2 | 2 | 4.75
3 | 3 | 3 | 10.50
4 | 4 | 4 | 18.50
5 | 4 | 4 | 23.00
6 | 7 | 7 | 1041.25
7 | 7 | 7 | 56.00
8 | 7 | 7 | 63.00
9 | 9 | 9 | 0.00
10 | 11 | 11 | 123.75
12 | 12 | 12 | 163.50
13 | 13 | 0 | 191.75
14 | 14 | 0 | 222.25
15 | 15 | 0 | 255.00
16 | 16 | 0 | 290.00
17 | 17 | 0 | 327.25
18 | 18 | 0 | 366.75
19 | 19 | 0 | 408.50
20 | 20 | 0 | 452.50

query
SELECT fill()
----
fill integer
0

# Rows are deleted between two searches for the same key.
statement ok
CREATE FUNCTION before_after(p_w smallint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE before bigint; after bigint; seen text := '';
BEGIN
  FOR i IN 1 .. 6 LOOP
    SELECT count(*) INTO before FROM part WHERE w = p_w AND k = i;
    DELETE FROM part WHERE w = p_w AND k = i AND m = i;
    SELECT count(*) INTO after FROM part WHERE w = p_w AND k = i;
    seen := seen || i || ':' || before || '-' || after || ' ';
  END LOOP;
  RETURN seen;
END $$

query
SELECT before_after(1::smallint)
----
before_after text
1:1-0 2:2-1 3:3-2 4:4-3 5:5-4 6:6-5

query
SELECT fill()
----
fill integer
0

# Rows one after another, of which an inner loop changes some and leaves early.
statement ok
CREATE FUNCTION each(p_w smallint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; seen text := '';
BEGIN
  FOR i IN 3 .. 6 LOOP
    FOR r IN SELECT m, v FROM part WHERE w = p_w AND k = i LOOP
      seen := seen || r.m || '=' || r.v || ' ';
      UPDATE part SET v = -1 WHERE w = p_w AND k = i + 1 AND m = r.m;
      EXIT WHEN r.m > 3;
    END LOOP;
    seen := seen || '; ';
  END LOOP;
  RETURN seen;
END $$

query
SELECT each(1::smallint)
----
each text
1=3.25 2=3.50 3=3.75 ; 1=-1.00 2=-1.00 3=-1.00 4=5.00 ; 1=-1.00 2=-1.00 3=-1.00 4=-1.00 ; 1=-1.00 2=-1.00 3=-1.00 4=-1.00 ;

query
SELECT fill()
----
fill integer
0

# Loops in a loop, each of which asks ahead; more rounds than are asked for; one row of many; no key.
statement ok
CREATE FUNCTION nested(p_w smallint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE total numeric; seen text := '';
BEGIN
  FOR a IN 1 .. 3 LOOP
    total := 0;
    FOR b IN 1 .. 4 LOOP
      SELECT total + sum(v) INTO total FROM part WHERE w = p_w AND k = b;
    END LOOP;
    seen := seen || total || ' ';
    DELETE FROM part WHERE w = p_w AND k = 4 AND m = a;
  END LOOP;
  RETURN seen;
END $$

query
SELECT nested(1::smallint)
----
nested text
35.00 30.75 26.25

statement ok
CREATE FUNCTION far(p_w smallint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE many bigint; one integer; all_rows bigint := 0; seen text := '';
BEGIN
  FOR i IN -70 .. 20 LOOP
    SELECT count(*) INTO many FROM part WHERE w = p_w AND k = i;
    SELECT x INTO one FROM part WHERE w = p_w AND k = i LIMIT 1;
    all_rows := all_rows + many;
    IF i > 17 THEN seen := seen || many || '/' || one || ' '; END IF;
  END LOOP;
  RETURN seen || all_rows;
END $$

query
SELECT far(1::smallint)
----
far text
18/1 19/1 20/1 207

query
SELECT far(NULL)
----
far text
NULL

# What a handler takes back is there again.
statement ok
CREATE FUNCTION undone(p_w smallint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE many bigint; seen text := '';
BEGIN
  FOR i IN 5 .. 9 LOOP
    BEGIN
      DELETE FROM part WHERE w = p_w AND k = i + 1 AND m = 1;
      SELECT count(*) INTO many FROM part WHERE w = p_w AND k = i;
      seen := seen || many || ' ';
      UPDATE part SET x = 1 / (i - 7) WHERE w = p_w AND k = i;
    EXCEPTION WHEN division_by_zero THEN seen := seen || '! ';
    END;
    SELECT count(*) INTO many FROM part WHERE w = p_w AND k = i;
    seen := seen || many || ' ';
  END LOOP;
  RETURN seen;
END $$

query
SELECT undone(1::smallint)
----
undone text
5 5 5 5 6 ! 6 8 8 8 8
