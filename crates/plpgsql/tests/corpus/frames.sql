# Where values are kept while a body runs: short and long texts, arrays that grow, rows read one after another.

statement ok
CREATE TABLE stock (w smallint NOT NULL, i integer NOT NULL, quantity smallint NOT NULL, note varchar(200), PRIMARY KEY (w, i))

statement ok
CREATE TABLE line (w smallint NOT NULL, d smallint NOT NULL, o integer NOT NULL, n smallint NOT NULL, item integer NOT NULL, amount numeric(6,2) NOT NULL, PRIMARY KEY (w, d, o, n))

statement ok
CREATE FUNCTION fill() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
  FOR n IN 1 .. 300 LOOP
    INSERT INTO stock VALUES (1, n, n % 50, repeat('x', n % 100));
  END LOOP;
  FOR o IN 1 .. 30 LOOP
    FOR n IN 1 .. 10 LOOP
      INSERT INTO line VALUES (1, 1, o, n, (o * 37 + n * 11) % 310, o + n * 0.25);
    END LOOP;
  END LOOP;
  RETURN 0;
END $$

query
SELECT fill()
----
fill integer
0

# More rows than are asked for ahead, some of them without a partner.
statement ok
CREATE FUNCTION low(p_w smallint, p_from integer, p_to integer, p_below smallint, OUT items integer, OUT lines integer, OUT total numeric) LANGUAGE plpgsql AS $$
BEGIN
  SELECT count(DISTINCT i), count(*), sum(amount) INTO items, lines, total
    FROM line JOIN stock ON stock.w = p_w AND i = item
   WHERE line.w = p_w AND d = 1 AND o >= p_from AND o < p_to AND quantity < p_below;
END $$

query
SELECT * FROM low(1::smallint, 1, 31, 20::smallint)
----
items integer | lines integer | total numeric
98 | 115 | 1981.50

query
SELECT * FROM low(1::smallint, 11, 31, 1000::smallint)
----
items integer | lines integer | total numeric
168 | 195 | 4268.25

query
SELECT * FROM low(1::smallint, 31, 1, 20::smallint)
----
items integer | lines integer | total numeric
0 | 0 | NULL

query
SELECT * FROM low(NULL::smallint, 1, 31, 20::smallint)
----
items integer | lines integer | total numeric
0 | 0 | NULL

query
SELECT * FROM low(2::smallint, 1, 31, 20::smallint)
----
items integer | lines integer | total numeric
0 | 0 | NULL

# Bounds that the column cannot hold.
statement ok
CREATE FUNCTION between_wide(p_low bigint, p_high bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE v integer;
BEGIN
  SELECT count(*) INTO v FROM line WHERE w = 1 AND d = 1 AND o = 3 AND n >= p_low AND n <= p_high;
  RETURN v;
END $$

query
SELECT between_wide(2, 5), between_wide(-9223372036854775808, 9223372036854775807), between_wide(40000, 50000), between_wide(-50000, 3), between_wide(9, 100000), between_wide(NULL, 4)
----
between_wide integer | between_wide integer | between_wide integer | between_wide integer | between_wide integer | between_wide integer
4 | 10 | 0 | 3 | 2 | 0

statement ok
CREATE FUNCTION above(p_low bigint, p_high bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE v integer;
BEGIN
  SELECT count(*) INTO v FROM line WHERE w = 1 AND d = 1 AND o = 3 AND n > p_low AND n < p_high;
  RETURN v;
END $$

query
SELECT above(2, 5), above(-9223372036854775808, 9223372036854775807), above(9223372036854775807, 1), above(1, -9223372036854775808), above(32766, 40000), above(-32769, 2), above(5, 5)
----
above integer | above integer | above integer | above integer | above integer | above integer | above integer
2 | 10 | 0 | 0 | 0 | 1 | 0

# A key of a type that holds more than the column.
statement ok
CREATE FUNCTION quantity_of(p_w integer, p_i bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE v integer;
BEGIN
  SELECT quantity INTO v FROM stock WHERE w = p_w AND i = p_i;
  IF NOT FOUND THEN RETURN -1; END IF;
  RETURN v;
END $$

query
SELECT quantity_of(1, 7), quantity_of(65537, 7), quantity_of(1, 4294967303), quantity_of(1, -7), quantity_of(NULL, 7), quantity_of(1, NULL), quantity_of(0, 0)
----
quantity_of integer | quantity_of integer | quantity_of integer | quantity_of integer | quantity_of integer | quantity_of integer | quantity_of integer
7 | -1 | -1 | -1 | -1 | -1 | -1

# Texts of all lengths, and parts of themselves.
statement ok
CREATE FUNCTION texts() RETURNS text LANGUAGE plpgsql AS $$
DECLARE a text; b text; c varchar(200); all_lengths integer := 0;
BEGIN
  FOR n IN 0 .. 200 LOOP
    a := repeat('ab', n / 2) || repeat('c', n % 2);
    b := a;
    a := substr(a, 3);
    c := b;
    all_lengths := all_lengths + length(a) + length(b) * 2 + length(c) * 3;
    a := b || a;
    b := left(a, 65);
    a := left(b, 64);
    a := substr(a, 2);
    IF b <> '' AND a <> substr(b, 2, 63) THEN RETURN 'wrong at ' || n; END IF;
  END LOOP;
  RETURN all_lengths || ' ' || a || ' ' || b;
END $$

query
SELECT texts()
----
texts text
120201 bababababababababababababababababababababababababababababababab ababababababababababababababababababababababababababababababababa

query
SELECT texts()
----
texts text
120201 bababababababababababababababababababababababababababababababab ababababababababababababababababababababababababababababababababa

# An array that grows at both ends, and one of texts.
statement ok
CREATE FUNCTION grows(p_n integer, OUT numbers integer[], OUT words text[], OUT first integer, OUT last integer, OUT many integer) LANGUAGE plpgsql AS $$
BEGIN
  FOR n IN 1 .. p_n LOOP
    numbers[n] := n * n;
    words[n] := CASE WHEN n % 3 = 0 THEN NULL WHEN n % 2 = 0 THEN 'even' ELSE 'odd ' || n END;
    numbers[n] := numbers[n] + 1;
  END LOOP;
  numbers[-1] := 5;
  numbers[p_n + 3] := 7;
  first := array_lower(numbers, 1);
  last := array_upper(numbers, 1);
  many := cardinality(numbers);
END $$

query
SELECT * FROM grows(3)
----
numbers integer[] | words text[] | first integer | last integer | many integer
[-1:6]={5,NULL,2,5,10,NULL,NULL,7} | {"odd 1",even,NULL} | -1 | 6 | 8

query
SELECT first, last, many, cardinality(words), numbers[20], words[35], words[36] FROM grows(40)
----
first integer | last integer | many integer | cardinality integer | numbers integer | words text | words text
-1 | 43 | 45 | 40 | 401 | odd 35 | NULL

query
SELECT * FROM grows(0)
----
numbers integer[] | words text[] | first integer | last integer | many integer
[-1:3]={5,NULL,NULL,NULL,7} | NULL | -1 | 3 | 5

# Loops over arrays that they change, or that are none.
statement ok
CREATE FUNCTION over(p integer[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE x integer; t text := ''; seen integer := 0;
BEGIN
  FOREACH x IN ARRAY p LOOP
    CONTINUE WHEN x IS NULL;
    EXIT WHEN x > 100;
    t := t || x || ',';
    seen := seen + 1;
  END LOOP;
  RETURN t || seen || FOUND || cardinality(p);
END $$

query
SELECT over(ARRAY[3, NULL, 5]), over(ARRAY[1, 101, 2]), over('{}'), over('[5:6]={1,2}')
----
over text | over text | over text | over text
3,5,2true3 | 1,1true3 | 0false0 | 1,2,2true2

statement error 22004
SELECT over(NULL)

statement ok
CREATE FUNCTION over_itself() RETURNS text LANGUAGE plpgsql AS $$
DECLARE p integer[] := ARRAY[1, 2, 3]; x integer; t text := '';
BEGIN
  FOREACH x IN ARRAY p LOOP
    p[x + 3] := x * 10;
    p[1] := 77;
    t := t || x || ' ';
  END LOOP;
  RETURN t || cardinality(p);
END $$

query
SELECT over_itself()
----
over_itself text
1 2 3 6

query
SELECT cardinality(NULL::integer[]), cardinality('{}'::integer[])
----
cardinality integer | cardinality integer
NULL | 0

# The subscript is computed before the value, and before its conversion.
statement ok
CREATE FUNCTION subscript_first(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE a integer[]; n integer := 0;
BEGIN
  BEGIN a[1 / p] := 'x' || p; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END;
  RETURN 'none';
END $$

query
SELECT subscript_first(0), subscript_first(1)
----
subscript_first text | subscript_first text
22012 | 22P02

statement ok
CREATE FUNCTION null_subscript(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE a integer[]; zero integer := 0;
BEGIN
  a[p] := 1 / zero;
  RETURN 'none';
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE;
END $$

query
SELECT null_subscript(NULL), null_subscript(1)
----
null_subscript text | null_subscript text
22004 | 22012

# The value of RETURN becomes one of the result's type outside of all handlers.
statement ok
CREATE FUNCTION returns_text(p text) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
  RETURN p;
EXCEPTION WHEN OTHERS THEN RETURN -1;
END $$

query
SELECT returns_text('12')
----
returns_text integer
12

statement error 22P02
SELECT returns_text('x')

statement ok
CREATE FUNCTION returns_quotient(p integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
  RETURN 10 / p;
EXCEPTION WHEN OTHERS THEN RETURN -1;
END $$

query
SELECT returns_quotient(0), returns_quotient(3)
----
returns_quotient integer | returns_quotient integer
-1 | 3

statement ok
CREATE FUNCTION returns_smallint(p integer) RETURNS smallint LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    RETURN p * 40000;
  EXCEPTION WHEN OTHERS THEN RETURN -1;
  END;
END $$

statement error 22003
SELECT returns_smallint(1)

# RETURNING goes straight to its targets, which may be what the statement reads.
statement ok
CREATE FUNCTION takes(p_i integer, p_note text, OUT old text, OUT quantity_now integer) LANGUAGE plpgsql AS $$
BEGIN
  old := p_note;
  UPDATE stock SET quantity = quantity - 1, note = old || note WHERE w = 1 AND i = p_i
  RETURNING note, quantity INTO STRICT old, quantity_now;
END $$

query
SELECT * FROM takes(3, 'was ')
----
old text | quantity_now integer
was xxx | 2

query
SELECT * FROM takes(3, repeat('long ', 20))
----
old text | quantity_now integer
long long long long long long long long long long long long long long long long long long long long was xxx | 1

statement error P0002
SELECT * FROM takes(1000, '')

statement ok
CREATE FUNCTION swaps(OUT a text, OUT b text, OUT n integer) LANGUAGE plpgsql AS $$
BEGIN
  a := 'first';
  b := repeat('second ', 12);
  SELECT b, a, quantity INTO a, b, n FROM stock WHERE w = 1 AND i = 5;
END $$

query
SELECT * FROM swaps()
----
a text | b text | n integer
second second second second second second second second second second second second | first | 5

statement ok
CREATE FUNCTION nothing_found(OUT a text, OUT n integer, OUT f boolean) LANGUAGE plpgsql AS $$
BEGIN
  a := 'stays not';
  n := 3;
  SELECT note, quantity INTO a, n FROM stock WHERE w = 1 AND i = 5000;
  f := FOUND;
END $$

query
SELECT * FROM nothing_found()
----
a text | n integer | f boolean
NULL | NULL | f

statement ok
CREATE FUNCTION moved(OUT n integer, OUT t text) LANGUAGE plpgsql AS $$
DECLARE c integer;
BEGIN
  INSERT INTO stock VALUES (1, 1000, 1, 'new') RETURNING i, note INTO n, t;
  DELETE FROM stock WHERE w = 1 AND i = 1000 RETURNING note || ' gone' INTO t;
  GET DIAGNOSTICS c = ROW_COUNT;
  n := n + c;
  SELECT count(*) INTO c FROM stock WHERE w = 1 AND i = 1000;
  n := n + c;
END $$

query
SELECT * FROM moved()
----
n integer | t text
1001 | new gone
