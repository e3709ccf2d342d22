# Lookups whose keys a loop knows before it begins: what they find when the round comes, not before.

statement ok
CREATE TABLE t (w smallint NOT NULL, k integer NOT NULL, n integer NOT NULL, a text NOT NULL, PRIMARY KEY (w, k))

statement ok
CREATE TABLE kin (w smallint NOT NULL, k integer NOT NULL, m smallint NOT NULL, v numeric(8,2), seen_at timestamp, name varchar(20) NOT NULL, PRIMARY KEY (w, k, m))

statement ok
CREATE INDEX kin_name ON kin (w, name, k)

statement ok
CREATE FUNCTION fill() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM t; DELETE FROM kin;
  FOR i IN 1 .. 100 LOOP
    INSERT INTO t VALUES (1, i, i * 10, 'row ' || i);
    FOR m IN 1 .. i % 4 LOOP
      INSERT INTO kin VALUES (1, i, m, i + m * 0.25, NULL, CASE WHEN i % 3 = 0 THEN 'same' ELSE 'a name that is long' END);
    END LOOP;
  END LOOP;
  RETURN 0;
END $$

query
SELECT fill()
----
fill integer
0

# Rows of later rounds are deleted, made, moved and changed by earlier ones.
statement ok
CREATE FUNCTION moving(p_w smallint, OUT seen text) LANGUAGE plpgsql AS $$
DECLARE v integer; x text;
BEGIN
  seen := '';
  FOR i IN 1 .. 12 LOOP
    SELECT n, a INTO v, x FROM t WHERE w = p_w AND k = i;
    seen := seen || i || '=' || coalesce(v::text, '-') || '/' || coalesce(x, '-') || ' ';
    IF i = 2 THEN DELETE FROM t WHERE w = p_w AND k = 5; END IF;
    IF i = 3 THEN UPDATE t SET n = -1, a = 'changed' WHERE w = p_w AND k = 7; END IF;
    IF i = 4 THEN UPDATE t SET k = 1000 WHERE w = p_w AND k = 8; END IF;
    IF i = 6 THEN INSERT INTO t VALUES (p_w, 5, 55, 'again'); END IF;
    IF i = 7 THEN UPDATE t SET k = 9 WHERE w = p_w AND k = 1000; EXIT; END IF;
  END LOOP;
EXCEPTION WHEN unique_violation THEN seen := seen || 'taken';
END $$

query
SELECT moving(1::smallint)
----
moving text
1=10/row 1 2=20/row 2 3=30/row 3 4=40/row 4 5=-/- 6=60/row 6 7=-1/changed taken

query
SELECT w, k, n, a FROM t WHERE k < 12 ORDER BY k
----
w smallint | k integer | n integer | a text
1 | 1 | 10 | row 1
1 | 2 | 20 | row 2
1 | 3 | 30 | row 3
1 | 4 | 40 | row 4
1 | 5 | 50 | row 5
1 | 6 | 60 | row 6
1 | 7 | 70 | row 7
1 | 8 | 80 | row 8
1 | 9 | 90 | row 9
1 | 10 | 100 | row 10
1 | 11 | 110 | row 11

query
SELECT fill()
----
fill integer
0

# A deleted row's place is taken by another.
statement ok
CREATE FUNCTION replaced(p_w smallint, OUT seen text) LANGUAGE plpgsql AS $$
DECLARE v integer;
BEGIN
  seen := '';
  FOR i IN 10 .. 20 LOOP
    SELECT n INTO v FROM t WHERE w = p_w AND k = i;
    seen := seen || i || '=' || coalesce(v::text, '-') || ' ';
    DELETE FROM t WHERE w = p_w AND k = i + 2;
    INSERT INTO t VALUES (p_w, 2000 + i, i, 'new');
    IF i % 4 = 0 THEN INSERT INTO t VALUES (p_w, i + 2, -i, 'back'); END IF;
  END LOOP;
END $$

query
SELECT replaced(1::smallint)
----
replaced text
10=100 11=110 12=- 13=- 14=-12 15=- 16=- 17=- 18=-16 19=- 20=-

query
SELECT count(*), sum(n) FROM t
----
count bigint | sum bigint
103 | 48747

query
SELECT fill()
----
fill integer
0

# What a handler takes back is found again.
statement ok
CREATE FUNCTION undone(p_w smallint, OUT seen text) LANGUAGE plpgsql AS $$
DECLARE v integer;
BEGIN
  seen := '';
  FOR i IN 1 .. 8 LOOP
    BEGIN
      DELETE FROM t WHERE w = p_w AND k BETWEEN i + 1 AND i + 2;
      IF i % 2 = 1 THEN RAISE EXCEPTION 'back'; END IF;
    EXCEPTION WHEN raise_exception THEN NULL;
    END;
    SELECT n INTO v FROM t WHERE w = p_w AND k = i;
    seen := seen || i || '=' || coalesce(v::text, '-') || ' ';
  END LOOP;
END $$

query
SELECT undone(1::smallint)
----
undone text
1=10 2=20 3=- 4=- 5=- 6=- 7=- 8=-

query
SELECT fill()
----
fill integer
0

# Keys that are guessed wrong, unknown, NULL or too large.
statement ok
CREATE FUNCTION guessed(p_w smallint, p_keys integer[], OUT seen text) LANGUAGE plpgsql AS $$
DECLARE v integer; key integer;
BEGIN
  seen := '';
  FOR i IN 1 .. cardinality(p_keys) LOOP
    key := p_keys[i];
    IF i % 3 = 0 THEN key := key + 1; END IF;
    SELECT n INTO v FROM t WHERE w = p_w AND k = key;
    seen := seen || coalesce(v::text, '-') || ' ';
  END LOOP;
END $$

query
SELECT guessed(1::smallint, ARRAY[3, 4, 5, NULL, 6, 100, 2147483647, -1, 0])
----
guessed text
30 40 60 - 60 - - - 10

query
SELECT guessed(NULL, ARRAY[3, 4])
----
guessed text
- -

query
SELECT guessed(2::smallint, ARRAY[3, 4])
----
guessed text
- -

# More rounds than are asked for ahead.
statement ok
CREATE FUNCTION many(p_w smallint, p_from integer, p_to integer, OUT total bigint, OUT missing integer) LANGUAGE plpgsql AS $$
DECLARE v integer;
BEGIN
  total := 0; missing := 0;
  FOR i IN p_from .. p_to LOOP
    SELECT n INTO v FROM t WHERE w = p_w AND k = i;
    IF FOUND THEN total := total + v; ELSE missing := missing + 1; END IF;
  END LOOP;
END $$

query
SELECT * FROM many(1::smallint, -70, 170)
----
total bigint | missing integer
50500 | 141

query
SELECT * FROM many(1::smallint, 1, 0)
----
total bigint | missing integer
0 | 0

query
SELECT * FROM many(1::smallint, 2147483600, 2147483647)
----
total bigint | missing integer
0 | 48

# Lookups behind a loop, whose rows the loop changes.
statement ok
CREATE FUNCTION behind(p_w smallint, p_k integer, p_deletes boolean, OUT first integer, OUT last integer, OUT note text) LANGUAGE plpgsql AS $$
DECLARE v integer;
BEGIN
  FOR i IN 1 .. 5 LOOP
    UPDATE t SET n = n + 1 WHERE w = p_w AND k = i RETURNING n INTO v;
    IF i = 3 AND p_deletes THEN DELETE FROM t WHERE w = p_w AND k = p_k; END IF;
    first := coalesce(first, v);
  END LOOP;
  INSERT INTO kin VALUES (p_w, p_k, 99, 1, NULL, 'behind');
  SELECT n, a INTO last, note FROM t WHERE w = p_w AND k = p_k;
END $$

query
SELECT * FROM behind(1::smallint, 4, false)
----
first integer | last integer | note text
11 | 41 | row 4

query
SELECT * FROM behind(1::smallint, 50, true)
----
first integer | last integer | note text
12 | NULL | NULL

query
SELECT * FROM behind(1::smallint, 51, false)
----
first integer | last integer | note text
13 | 510 | row 51

query
SELECT fill()
----
fill integer
0

# Columns that a CASE chooses.
statement ok
CREATE FUNCTION chosen(p_w smallint, p_which smallint, OUT seen text) LANGUAGE plpgsql AS $$
DECLARE v text;
BEGIN
  seen := '';
  FOR i IN 1 .. 4 LOOP
    UPDATE t SET n = n - 1 WHERE w = p_w AND k = i
      RETURNING CASE p_which WHEN 1 THEN a WHEN 2 THEN n::text WHEN 3 THEN k::text END INTO v;
    seen := seen || coalesce(v, '-') || ' ';
  END LOOP;
END $$

query
SELECT chosen(1::smallint, 1::smallint), chosen(1::smallint, 2::smallint), chosen(1::smallint, 3::smallint)
----
chosen text | chosen text | chosen text
row 1 row 2 row 3 row 4 | 8 18 28 38 | 1 2 3 4

query
SELECT chosen(1::smallint, 4::smallint), chosen(1::smallint, NULL)
----
chosen text | chosen text
- - - - | - - - -

# Searches of a loop, and changes that are the same for all their rows.
statement ok
CREATE FUNCTION searched(p_w smallint, p_at timestamp, OUT seen text) LANGUAGE plpgsql AS $$
DECLARE total numeric(10,2); least smallint;
BEGIN
  seen := '';
  FOR i IN 1 .. 12 LOOP
    SELECT min(m) INTO least FROM kin WHERE w = p_w AND k = i;
    SELECT sum(v) INTO total FROM kin WHERE w = p_w AND k = i;
    UPDATE kin SET seen_at = p_at, v = NULL WHERE w = p_w AND k = i;
    seen := seen || coalesce(least::text, '-') || ':' || coalesce(total::text, '-') || ' ';
    IF i = 3 THEN DELETE FROM kin WHERE w = p_w AND k = 6; END IF;
    IF i = 4 THEN INSERT INTO kin VALUES (p_w, 4, 1, 7.5, NULL, 'x'), (p_w, 8, 1, 8.5, NULL, 'x'); END IF;
  END LOOP;
END $$

query
SELECT searched(1::smallint, '2020-02-03 04:05:06')
----
searched text
1:1.25 1:4.75 1:10.50 -:- 1:5.25 -:- 1:22.50 1:8.50 1:9.25 1:20.75 1:34.50 -:-

query
SELECT k, m, v, seen_at, name FROM kin WHERE k < 10 ORDER BY k, m
----
k integer | m smallint | v numeric(8,2) | seen_at timestamp without time zone | name character varying(20)
1 | 1 | NULL | 2020-02-03 04:05:06 | a name that is long
2 | 1 | NULL | 2020-02-03 04:05:06 | a name that is long
2 | 2 | NULL | 2020-02-03 04:05:06 | a name that is long
3 | 1 | NULL | 2020-02-03 04:05:06 | same
3 | 2 | NULL | 2020-02-03 04:05:06 | same
3 | 3 | NULL | 2020-02-03 04:05:06 | same
4 | 1 | 7.50 | NULL | x
5 | 1 | NULL | 2020-02-03 04:05:06 | a name that is long
7 | 1 | NULL | 2020-02-03 04:05:06 | a name that is long
7 | 2 | NULL | 2020-02-03 04:05:06 | a name that is long
7 | 3 | NULL | 2020-02-03 04:05:06 | a name that is long
8 | 1 | NULL | 2020-02-03 04:05:06 | x
9 | 1 | NULL | 2020-02-03 04:05:06 | same

statement ok
CREATE FUNCTION alike(p_w smallint, p_k integer, p_name varchar, OUT changed bigint, OUT was boolean) LANGUAGE plpgsql AS $$
BEGIN
  UPDATE kin SET name = p_name, v = 3 WHERE w = p_w AND k = p_k;
  was := FOUND;
  GET DIAGNOSTICS changed = ROW_COUNT;
END $$

query
SELECT * FROM alike(1::smallint, 7, 'new')
----
changed bigint | was boolean
3 | t

query
SELECT * FROM alike(1::smallint, 4000, 'new')
----
changed bigint | was boolean
0 | f

statement error 23502
SELECT * FROM alike(1::smallint, 7, NULL)

statement error 22001
SELECT * FROM alike(1::smallint, 7, 'a name that has more than twenty characters')

query
SELECT k, m, v, name FROM kin WHERE k = 7 ORDER BY m
----
k integer | m smallint | v numeric(8,2) | name character varying(20)
7 | 1 | 3.00 | new
7 | 2 | 3.00 | new
7 | 3 | 3.00 | new

statement ok
CREATE FUNCTION now_alike(p_w smallint, p_k integer, OUT same boolean, OUT changed bigint) LANGUAGE plpgsql AS $$
BEGIN
  UPDATE kin SET seen_at = now() WHERE w = p_w AND k = p_k;
  GET DIAGNOSTICS changed = ROW_COUNT;
  SELECT count(*) = changed INTO same FROM kin WHERE w = p_w AND k = p_k AND seen_at = now();
END $$

query
SELECT * FROM now_alike(1::smallint, 11)
----
same boolean | changed bigint
t | 3

query
SELECT fill()
----
fill integer
0

# Keys that end with a text.
statement ok
CREATE FUNCTION named(p_w smallint, p_name text, OUT many integer, OUT middle integer, OUT sums numeric) LANGUAGE plpgsql AS $$
BEGIN
  SELECT count(*) INTO many FROM kin WHERE w = p_w AND name = p_name;
  SELECT k INTO middle FROM kin WHERE w = p_w AND name = p_name ORDER BY k LIMIT 1 OFFSET (many - 1) / 2;
  SELECT sum(v) INTO sums FROM kin WHERE w = p_w AND name = p_name;
END $$

query
SELECT * FROM named(1::smallint, 'same')
----
many integer | middle integer | sums numeric
51 | 51 | 2574.50

query
SELECT * FROM named(1::smallint, 'a name that is long')
----
many integer | middle integer | sums numeric
99 | 50 | 5038.00

query
SELECT * FROM named(1::smallint, 'a name that is lonh')
----
many integer | middle integer | sums numeric
0 | NULL | NULL

query
SELECT * FROM named(1::smallint, 'a name that is long ')
----
many integer | middle integer | sums numeric
0 | NULL | NULL

query
SELECT * FROM named(1::smallint, '')
----
many integer | middle integer | sums numeric
0 | NULL | NULL

query
SELECT count(*) FROM kin WHERE w = 1 AND name = NULL
----
count bigint
0

query
SELECT * FROM named(NULL, 'same')
----
many integer | middle integer | sums numeric
0 | NULL | NULL

# Texts put together of texts and numbers, and the beginnings of texts.
statement ok
CREATE FUNCTION joined(a integer, b smallint, c bigint, d numeric(6,2), e numeric, f text, OUT whole text, OUT half text, OUT beginning text, OUT nothing text) LANGUAGE plpgsql AS $$
DECLARE short varchar(5) := 'äöü';
BEGIN
  whole := a || ' ' || b || '|' || c || '|' || d || '|' || e || '|' || f;
  half := left(a || short || d::numeric(6,2) || f, 4);
  beginning := left(f, 2);
  nothing := left(f, 0);
  f := left(f, 3);
  whole := whole || '!' || f || f;
END $$

query
SELECT * FROM joined(1, 2::smallint, 3, 4.5, 6.789, 'seven')
----
whole text | half text | beginning text | nothing text
1 2|3|4.5|6.789|seven!sevsev | 1äöü | se | (empty)

query
SELECT * FROM joined(-2147483648, (-32768)::smallint, -9223372036854775808, -9999.99, -0.000, 'äé漢字')
----
whole text | half text | beginning text | nothing text
-2147483648 -32768|-9223372036854775808|-9999.99|0.000|äé漢字!äé漢äé漢 | -214 | äé | (empty)

query
SELECT * FROM joined(1, NULL, 3, 4.5, 6.789, 'seven')
----
whole text | half text | beginning text | nothing text
NULL | 1äöü | se | (empty)

query
SELECT * FROM joined(1, 2::smallint, 3, 4.5, 6.789, NULL)
----
whole text | half text | beginning text | nothing text
NULL | NULL | NULL | NULL

query
SELECT * FROM joined(1, 2::smallint, 3, 0, 12345678901234567890.12345, '')
----
whole text | half text | beginning text | nothing text
1 2|3|0|12345678901234567890.12345|! | 1äöü | (empty) | (empty)

# Sums of numbers that are short, long, of other digits, or NULL.
statement ok
CREATE FUNCTION summed(a numeric, b numeric, OUT plus numeric, OUT minus numeric) LANGUAGE plpgsql AS $$
BEGIN
  plus := a + b;
  minus := a - b;
END $$

query
SELECT * FROM summed(1.25, 2.50)
----
plus numeric | minus numeric
3.75 | -1.25

query
SELECT * FROM summed(1.25, 2.5)
----
plus numeric | minus numeric
3.75 | -1.25

query
SELECT * FROM summed(-1.25, 2.50)
----
plus numeric | minus numeric
1.25 | -3.75

query
SELECT * FROM summed(92233720368547758.07, 0.01)
----
plus numeric | minus numeric
92233720368547758.08 | 92233720368547758.06

query
SELECT * FROM summed(-92233720368547758.08, 0.01)
----
plus numeric | minus numeric
-92233720368547758.07 | -92233720368547758.09

query
SELECT * FROM summed(92233720368547758.07, -92233720368547758.07)
----
plus numeric | minus numeric
0.00 | 184467440737095516.14

query
SELECT * FROM summed(12345678901234567890.12, 0.01)
----
plus numeric | minus numeric
12345678901234567890.13 | 12345678901234567890.11

query
SELECT * FROM summed(NULL, 0.01)
----
plus numeric | minus numeric
NULL | NULL

query
SELECT * FROM summed(0.01, NULL)
----
plus numeric | minus numeric
NULL | NULL

# Times with and without a zone.
query
SELECT now()::timestamp = now(), now()::timestamp::timestamptz = now()
----
?column? boolean | ?column? boolean
t | t

# Arrays of texts that are appended to, overwritten and begun elsewhere.
statement ok
CREATE FUNCTION appended(p_n integer, OUT items text[], OUT others text[]) LANGUAGE plpgsql AS $$
DECLARE x text;
BEGIN
  FOR i IN 1 .. p_n LOOP
    x := 'item ' || i;
    items[i] := x;
    others[i - 3] := CASE WHEN i % 5 = 0 THEN NULL ELSE x END;
    IF i % 7 = 0 THEN items[i - 2] := left(x, i % 4); END IF;
  END LOOP;
  items[p_n + 3] := 'end';
END $$

query
SELECT * FROM appended(3)
----
items text[] | others text[]
{"item 1","item 2","item 3",NULL,NULL,end} | [-2:0]={"item 1","item 2","item 3"}

query
SELECT * FROM appended(20)
----
items text[] | others text[]
{"item 1","item 2","item 3","item 4",ite,"item 6","item 7","item 8","item 9","item 10","item 11",it,"item 13","item 14","item 15","item 16","item 17","item 18","item 19","item 20",NULL,NULL,end} | [-2:17]={"item 1","item 2","item 3","item 4",NULL,"item 6","item 7","item 8","item 9",NULL,"item 11","item 12","item 13","item 14",NULL,"item 16","item 17","item 18","item 19",NULL}

query
SELECT cardinality(items), items[40], items[41], items[43], others[0], others[37] FROM appended(40)
----
cardinality integer | items text | items text | items text | others text | others text
43 | item 40 | NULL | end | item 3 | NULL

# Keys whose whole numbers alone are longer than what an index compares.
statement ok
CREATE TABLE wide (id integer PRIMARY KEY, a bigint NOT NULL, b bigint NOT NULL, c bigint NOT NULL, n text NOT NULL, x integer NOT NULL, v integer)

statement ok
CREATE INDEX wide_key ON wide (a, b, c, n, x)

statement count 3
INSERT INTO wide VALUES (1, 1, 1, 1, 'k', 0, 0), (2, 1, 1, 2, 'k', 0, 0), (3, 1, 1, 1, 'kk', 0, 0)

statement ok
CREATE FUNCTION wide_rows(pa bigint, pb bigint, pc bigint, pn text, OUT many bigint, OUT changed bigint) LANGUAGE plpgsql AS $$
BEGIN
  SELECT count(*) INTO many FROM wide WHERE a = pa AND b = pb AND c = pc AND n = pn;
  UPDATE wide SET v = 7 WHERE a = pa AND b = pb AND c = pc AND n = pn;
  GET DIAGNOSTICS changed = ROW_COUNT;
END $$

query
SELECT * FROM wide_rows(1, 1, 1, 'k')
----
many bigint | changed bigint
1 | 1

query
SELECT id, v FROM wide ORDER BY id
----
id integer | v integer
1 | 7
2 | 0
3 | 0
