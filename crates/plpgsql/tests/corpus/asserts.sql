# ASSERT.

statement ok
CREATE FUNCTION asserted(p integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    ASSERT p > 0;
    ASSERT p < 10, 'too large: ' || p;
    RETURN 'fine';
END;
$$

query
SELECT asserted(5)
----
asserted text
fine

statement error P0004
SELECT asserted(0)

statement error P0004
SELECT asserted(10)

statement error P0004
SELECT asserted(NULL)

statement ok
CREATE FUNCTION message_of(p integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN asserted(p);
EXCEPTION WHEN assert_failure THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END;
$$

query
SELECT message_of(1), message_of(0), message_of(11)
----
message_of text | message_of text | message_of text
fine | P0004 assertion failed | P0004 too large: 11

statement ok
CREATE FUNCTION null_message() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    ASSERT 1 = 2, NULL;
    RETURN 'never';
EXCEPTION WHEN assert_failure THEN
    RETURN SQLERRM;
END;
$$

query
SELECT null_message()
----
null_message text
assertion failed

# The message is computed only when it is needed.

statement ok
CREATE FUNCTION lazy_message(p integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    ASSERT p = 0, 'p is ' || 10 / p;
    RETURN 'fine';
END;
$$

query
SELECT lazy_message(0)
----
lazy_message text
fine

statement error P0004
SELECT lazy_message(1)

statement ok
CREATE TABLE t (id integer PRIMARY KEY)

statement ok
CREATE FUNCTION assert_query(p bigint) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO t VALUES (p);
    ASSERT (SELECT count(*) FROM t) = p, 'rows';
    RETURN 'fine';
END;
$$

query
SELECT assert_query(1)
----
assert_query text
fine

statement error P0004
SELECT assert_query(5)

query
SELECT * FROM t
----
id integer
1
