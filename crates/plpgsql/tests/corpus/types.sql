# Types of variables: scalars with modifiers, %TYPE, %ROWTYPE, RECORD, rows.

statement ok
CREATE TABLE account (id integer PRIMARY KEY, owner varchar(10) NOT NULL, code char(4), balance numeric(8,2), active boolean, opened date)

statement count 3
INSERT INTO account VALUES (1, 'ann', 'A1', 100.50, true, '2020-01-31'), (2, 'bob', NULL, -3.999, false, NULL), (3, 'cid', 'C345', NULL, NULL, '2024-02-29')

statement ok
CREATE FUNCTION like_column(p account.id%TYPE) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    o account.owner%TYPE;
    b account.balance%TYPE := 1.239;
    same b%TYPE;
BEGIN
    SELECT owner INTO o FROM account WHERE id = p;
    same := b * 2;
    RETURN o || ' ' || b || ' ' || same;
END;
$$

query
SELECT like_column(1)
----
like_column text
ann 1.24 2.48

statement ok
CREATE FUNCTION row_variable(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    a account%ROWTYPE;
BEGIN
    SELECT * INTO a FROM account WHERE id = p;
    RETURN a.id || '/' || a.owner || '/' || coalesce(a.code, '?') || '/' || coalesce(a.balance::text, '?') || '/' || coalesce(a.active::text, '?') || '/' || coalesce(a.opened::text, '?');
END;
$$

query
SELECT row_variable(1), row_variable(2), row_variable(3), row_variable(4)
----
row_variable text | row_variable text | row_variable text | row_variable text
1/ann/A1/100.50/true/2020-01-31 | 2/bob/?/-4.00/false/? | 3/cid/C345/?/?/2024-02-29 | NULL

statement ok
CREATE FUNCTION table_name_as_type(p integer) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    a account;
BEGIN
    SELECT * INTO a FROM account WHERE id = p;
    a.balance := a.balance + 0.005;
    RETURN a.balance;
END;
$$

query
SELECT table_name_as_type(1), table_name_as_type(2), table_name_as_type(3)
----
table_name_as_type numeric | table_name_as_type numeric | table_name_as_type numeric
100.51 | -4.00 | NULL

statement ok
CREATE FUNCTION row_of_nulls() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    a account%ROWTYPE;
BEGIN
    RETURN a IS NULL AND a.id IS NULL;
END;
$$

query
SELECT row_of_nulls()
----
row_of_nulls boolean
t

statement ok
CREATE FUNCTION row_is_copied() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    a account%ROWTYPE;
    b account%ROWTYPE;
BEGIN
    SELECT * INTO a FROM account WHERE id = 1;
    b := a;
    b.owner := 'zoe';
    RETURN a.owner || ' ' || b.owner || ' ' || b.id;
END;
$$

query
SELECT row_is_copied()
----
row_is_copied text
ann zoe 1

statement ok
CREATE FUNCTION record_takes_any_row(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r RECORD;
    result text;
BEGIN
    SELECT id, owner INTO r FROM account WHERE id = p;
    result := r.owner;
    SELECT balance * 2 AS twice, 'x' AS word INTO r FROM account WHERE id = p;
    RETURN result || r.word || r.twice;
END;
$$

query
SELECT record_takes_any_row(1), record_takes_any_row(3), record_takes_any_row(4)
----
record_takes_any_row text | record_takes_any_row text | record_takes_any_row text
annx201.00 | NULL | NULL

statement ok
CREATE FUNCTION record_not_assigned() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    r RECORD;
BEGIN
    RETURN r.id;
END;
$$

statement error 55000
SELECT record_not_assigned()

statement ok
CREATE FUNCTION record_field_assigned() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    r RECORD;
BEGIN
    SELECT id, owner INTO r FROM account WHERE id = 2;
    r.id := r.id + 40;
    RETURN r.id;
END;
$$

query
SELECT record_field_assigned()
----
record_field_assigned integer
42

# Values are fitted to the type they are assigned to.

statement ok
CREATE FUNCTION fit_varchar(p text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v varchar(5);
BEGIN
    v := p;
    RETURN '[' || v || ']';
END;
$$

query
SELECT fit_varchar('abc'), fit_varchar('abcde'), fit_varchar('abcde   '), fit_varchar('')
----
fit_varchar text | fit_varchar text | fit_varchar text | fit_varchar text
[abc] | [abcde] | [abcde] | []

statement error 22001
SELECT fit_varchar('abcdef')

statement ok
CREATE FUNCTION fit_char(p text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v char(5);
BEGIN
    v := p;
    RETURN '[' || v || ']' || length(v) || (v = 'ab') || (v = 'ab  ');
END;
$$

query
SELECT fit_char('ab'), fit_char('ab '), fit_char('abcde'), fit_char('')
----
fit_char text | fit_char text | fit_char text | fit_char text
[ab]2truetrue | [ab]2truetrue | [abcde]5falsefalse | []0falsefalse

statement error 22001
SELECT fit_char('abcdef')

statement ok
CREATE FUNCTION fit_numeric(p numeric) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v numeric(4,2);
BEGIN
    v := p;
    RETURN v;
END;
$$

query
SELECT fit_numeric(1), fit_numeric(1.005), fit_numeric(-1.005), fit_numeric(99.994), fit_numeric(0.004)
----
fit_numeric text | fit_numeric text | fit_numeric text | fit_numeric text | fit_numeric text
1.00 | 1.01 | -1.01 | 99.99 | 0.00

statement error 22003
SELECT fit_numeric(99.995)

statement error 22003
SELECT fit_numeric(100)

statement ok
CREATE FUNCTION fit_smallint(p integer) RETURNS smallint LANGUAGE plpgsql AS $$
DECLARE
    v smallint;
BEGIN
    v := p;
    RETURN v;
END;
$$

query
SELECT fit_smallint(32767), fit_smallint(-32768), fit_smallint(NULL)
----
fit_smallint smallint | fit_smallint smallint | fit_smallint smallint
32767 | -32768 | NULL

statement error 22003
SELECT fit_smallint(32768)

statement ok
CREATE FUNCTION fit_integer(p numeric) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v integer;
BEGIN
    v := p;
    RETURN v;
END;
$$

query
SELECT fit_integer(1.4), fit_integer(1.5), fit_integer(2.5), fit_integer(-1.5), fit_integer(-0.5), fit_integer(2147483647.4)
----
fit_integer integer | fit_integer integer | fit_integer integer | fit_integer integer | fit_integer integer | fit_integer integer
1 | 2 | 3 | -2 | -1 | 2147483647

statement error 22003
SELECT fit_integer(2147483647.5)

statement ok
CREATE FUNCTION text_to_integer(p text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v integer;
BEGIN
    v := p;
    RETURN v;
END;
$$

query
SELECT text_to_integer('12'), text_to_integer(' -12 '), text_to_integer(NULL)
----
text_to_integer integer | text_to_integer integer | text_to_integer integer
12 | -12 | NULL

statement error 22P02
SELECT text_to_integer('1.5')

statement error 22P02
SELECT text_to_integer('')

statement error 22003
SELECT text_to_integer('99999999999')

statement ok
CREATE FUNCTION text_to_boolean(p text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN p::boolean;
END;
$$

query
SELECT text_to_boolean('true'), text_to_boolean('f'), text_to_boolean('YES'), text_to_boolean('0'), text_to_boolean('on')
----
text_to_boolean boolean | text_to_boolean boolean | text_to_boolean boolean | text_to_boolean boolean | text_to_boolean boolean
t | f | t | f | t

statement error 22P02
SELECT text_to_boolean('maybe')

statement ok
CREATE FUNCTION double_to_integer(p double precision) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RETURN p;
END;
$$

query
SELECT double_to_integer(0.5), double_to_integer(1.5), double_to_integer(2.5), double_to_integer(-2.5), double_to_integer(1e9)
----
double_to_integer integer | double_to_integer integer | double_to_integer integer | double_to_integer integer | double_to_integer integer
0 | 2 | 2 | -2 | 1000000000

statement error 22003
SELECT double_to_integer(1e10)

statement error 22003
SELECT double_to_integer('NaN')

statement ok
CREATE FUNCTION boolean_to_integer(p boolean) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RETURN p::integer * 10;
END;
$$

query
SELECT boolean_to_integer(true), boolean_to_integer(false), boolean_to_integer(NULL)
----
boolean_to_integer integer | boolean_to_integer integer | boolean_to_integer integer
10 | 0 | NULL

statement error 42704
CREATE FUNCTION unknown_type() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    a no_such_type;
BEGIN
    RETURN 1;
END;
$$

statement error 42601
CREATE FUNCTION unknown_column() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    a account.no_such_column%TYPE;
BEGIN
    RETURN 1;
END;
$$

statement error 42P01
CREATE FUNCTION unknown_table() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    a no_such_table%ROWTYPE;
BEGIN
    RETURN 1;
END;
$$

# Fields of a record keep lengths and digits of the columns they were read from.
statement ok
CREATE TABLE priced (id integer PRIMARY KEY, price numeric(8,2), rate numeric(5,4), code char(3))

statement count 2
INSERT INTO priced VALUES (1, 10.25, 0.5, 'ab'), (2, 3, 0.1234, 'xyz')

statement ok
CREATE FUNCTION record_digits(how integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r RECORD;
    s RECORD;
    t RECORD;
    v numeric(6,1) := 7;
BEGIN
    CASE how
    WHEN 1 THEN FOR r IN SELECT * FROM priced ORDER BY id LOOP r.price := r.price / 3; r.rate := r.rate * 1.5; END LOOP;
    WHEN 2 THEN SELECT price, price::numeric AS rate INTO s FROM priced; s.price := 1.239; s.rate := 1.239;
    WHEN 3 THEN SELECT price::numeric(8,1) AS price, coalesce(rate, rate) AS rate INTO s FROM priced; s.price := 1.239; s.rate := 1.23456;
    WHEN 4 THEN SELECT v AS price, 1.50 AS rate INTO s; s.price := 1.239; s.rate := 1.239;
    WHEN 5 THEN SELECT q.price, q.m AS rate INTO s FROM (SELECT price, max(rate) AS m FROM priced GROUP BY price) q ORDER BY 1; s.price := 1.239; s.rate := 1.23456;
    WHEN 6 THEN WITH w AS (SELECT price FROM priced) SELECT (SELECT price FROM w LIMIT 1) AS price, price AS rate INTO s FROM w; s.price := 1.239; s.rate := 1.239;
    WHEN 7 THEN UPDATE priced SET rate = 1 WHERE id = 1 RETURNING price, rate + 1 AS rate INTO s; s.price := 1.239; s.rate := 1.23456;
    WHEN 8 THEN SELECT price, rate INTO s FROM priced UNION SELECT price, price FROM priced; s.price := 1.239; s.rate := 1.23456;
    WHEN 9 THEN SELECT price, CASE WHEN id = 1 THEN rate END AS rate INTO s FROM priced; s.price := 1.239; s.rate := 1.23456;
    WHEN 10 THEN SELECT greatest(price, 20.00) AS price, nullif(price, 1) AS rate INTO s FROM priced; s.price := 1.239; s.rate := 1.239;
    WHEN 11 THEN SELECT 1.5 AS price, 2.5 AS rate INTO s; s := s; s.price := s.price / 3; s.rate := 10.0 / 3;
    WHEN 12 THEN SELECT price, rate INTO t FROM priced; s := t; s.price := 1.239; s.rate := 12345.6789;
    END CASE;
    IF how = 1 THEN RETURN r.price || ' ' || r.rate; END IF;
    RETURN s.price || ' ' || s.rate;
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END;
$$

query
SELECT how, record_digits(how) FROM generate_series(1, 12) g(how) ORDER BY how
----
how integer | record_digits text
1 | 1.00 0.1851
2 | 1.24 1.239
3 | 1.2 1.2346
4 | 1.2 1.239
5 | 1.24 1.23456
6 | 1.24 1.24
7 | 1.24 1.23456
8 | 1.24 1.23456
9 | 1.24 1.23456
10 | 1.239 1.24
11 | 0.50000000000000000000 3.3333333333333333
12 | 22003
