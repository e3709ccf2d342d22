# LOOP, WHILE, FOR over integers; EXIT, CONTINUE, labels.

statement ok
CREATE FUNCTION endless(n integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    i integer := 0;
BEGIN
    LOOP
        EXIT WHEN i >= n;
        i := i + 1;
    END LOOP;
    RETURN i;
END;
$$

query
SELECT endless(5), endless(0), endless(-3)
----
endless integer | endless integer | endless integer
5 | 0 | 0

statement ok
CREATE FUNCTION return_from_loop(n integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    i integer := 0;
BEGIN
    LOOP
        i := i + 1;
        IF i * i >= n THEN
            RETURN i;
        END IF;
    END LOOP;
END;
$$

query
SELECT return_from_loop(26), return_from_loop(1)
----
return_from_loop integer | return_from_loop integer
6 | 1

statement ok
CREATE FUNCTION greatest_divisor(a integer, b integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    t integer;
BEGIN
    WHILE b <> 0 LOOP
        t := b;
        b := a % b;
        a := t;
    END LOOP;
    RETURN a;
END;
$$

query
SELECT greatest_divisor(48, 18), greatest_divisor(7, 0), greatest_divisor(17, 5)
----
greatest_divisor integer | greatest_divisor integer | greatest_divisor integer
6 | 7 | 1

statement ok
CREATE FUNCTION counted(a integer, b integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r text := '';
BEGIN
    FOR i IN a..b LOOP
        r := r || i || ',';
    END LOOP;
    RETURN r;
END;
$$

query
SELECT counted(1, 3), counted(-1, 1), counted(2, 2), counted(3, 1)
----
counted text | counted text | counted text | counted text
1,2,3, | -1,0,1, | 2, | (empty)

statement error 22004
SELECT counted(NULL, 1)

statement error 22004
SELECT counted(1, NULL)

statement ok
CREATE FUNCTION counted_down(a integer, b integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r text := '';
BEGIN
    FOR i IN REVERSE a..b LOOP
        r := r || i || ',';
    END LOOP;
    RETURN r;
END;
$$

query
SELECT counted_down(3, 1), counted_down(1, 3), counted_down(0, 0)
----
counted_down text | counted_down text | counted_down text
3,2,1, | (empty) | 0,

statement ok
CREATE FUNCTION stepped(a integer, b integer, s integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r text := '';
BEGIN
    FOR i IN a..b BY s LOOP
        r := r || i || ',';
    END LOOP;
    r := r || '/';
    FOR i IN REVERSE b..a BY s LOOP
        r := r || i || ',';
    END LOOP;
    RETURN r;
END;
$$

query
SELECT stepped(1, 10, 3), stepped(1, 9, 4), stepped(5, 5, 100)
----
stepped text | stepped text | stepped text
1,4,7,10,/10,7,4,1, | 1,5,9,/9,5,1, | 5,/5,

statement error 22023
SELECT stepped(1, 10, 0)

statement error 22023
SELECT stepped(1, 10, -1)

statement error 22004
SELECT stepped(1, 10, NULL)

# At the ends of the type a loop stops instead of overflowing.

query
SELECT counted(2147483645, 2147483647), counted_down(-2147483647, -2147483648), stepped(2147483640, 2147483647, 5)
----
counted text | counted_down text | stepped text
2147483645,2147483646,2147483647, | -2147483647,-2147483648, | 2147483640,2147483645,/2147483647,2147483642,

# The variable is new and hides others; what is assigned to it does not change the next round.

statement ok
CREATE FUNCTION variable_of_loop() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    i integer := 42;
    r text := '';
BEGIN
    FOR i IN 1..6 LOOP
        r := r || i;
        i := i + 100;
        r := r || ':' || i || ' ';
    END LOOP;
    RETURN r || i;
END;
$$

query
SELECT variable_of_loop()
----
variable_of_loop text
1:101 2:102 3:103 4:104 5:105 6:106 42

# The bounds are computed once.

statement ok
CREATE FUNCTION bounds_once(n integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    rounds integer := 0;
BEGIN
    FOR i IN 1..n LOOP
        n := n + 1;
        rounds := rounds + 1;
    END LOOP;
    RETURN rounds * 100 + n;
END;
$$

query
SELECT bounds_once(3)
----
bounds_once integer
306

statement ok
CREATE FUNCTION bounds_of_other_types(a numeric, b bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r text := '';
BEGIN
    FOR i IN a..b LOOP
        r := r || i || ',';
    END LOOP;
    RETURN r;
END;
$$

query
SELECT bounds_of_other_types(1.5, 4), bounds_of_other_types(0.4, 1)
----
bounds_of_other_types text | bounds_of_other_types text
2,3,4, | 0,1,

statement error 22003
SELECT bounds_of_other_types(1, 3000000000)

statement ok
CREATE FUNCTION skip_even(n integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r text := '';
    i integer := 0;
BEGIN
    WHILE i < n LOOP
        i := i + 1;
        CONTINUE WHEN i % 2 = 0;
        IF i = 7 THEN
            CONTINUE;
        END IF;
        r := r || i || ',';
    END LOOP;
    RETURN r;
END;
$$

query
SELECT skip_even(9)
----
skip_even text
1,3,5,9,

statement ok
CREATE FUNCTION labels(n integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r text := '';
BEGIN
    <<rows>>
    FOR i IN 1..n LOOP
        <<columns>>
        FOR j IN 1..n LOOP
            CONTINUE rows WHEN j > i;
            EXIT rows WHEN i * j > 8;
            CONTINUE columns WHEN i = j;
            r := r || i || j || ' ';
        END LOOP columns;
        r := r || '; ';
    END LOOP rows;
    RETURN r;
END;
$$

query
SELECT labels(2), labels(5)
----
labels text | labels text
21 ; | 21 31 32

statement ok
CREATE FUNCTION variable_by_label() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r text := '';
BEGIN
    <<outer_loop>>
    FOR i IN 1..2 LOOP
        FOR i IN 10..11 LOOP
            r := r || outer_loop.i || '-' || i || ' ';
        END LOOP;
    END LOOP;
    RETURN r;
END;
$$

query
SELECT variable_by_label()
----
variable_by_label text
1-10 1-11 2-10 2-11

statement ok
CREATE FUNCTION exit_block_within_loop() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    n integer := 0;
BEGIN
    FOR i IN 1..5 LOOP
        <<once>>
        BEGIN
            IF i = 3 THEN
                EXIT once;
            END IF;
            n := n + i;
        END;
    END LOOP;
    RETURN n;
END;
$$

query
SELECT exit_block_within_loop()
----
exit_block_within_loop integer
12

statement ok
CREATE FUNCTION exit_within_block_leaves_loop() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    n integer := 0;
BEGIN
    FOR i IN 1..5 LOOP
        BEGIN
            EXIT WHEN i = 3;
            n := n + i;
        END;
    END LOOP;
    RETURN n;
END;
$$

query
SELECT exit_within_block_leaves_loop()
----
exit_within_block_leaves_loop integer
3

statement ok
CREATE FUNCTION primes(n integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r text := '';
    is_prime boolean;
BEGIN
    FOR i IN 2..n LOOP
        is_prime := true;
        FOR j IN 2..i - 1 LOOP
            EXIT WHEN j * j > i;
            IF i % j = 0 THEN
                is_prime := false;
                EXIT;
            END IF;
        END LOOP;
        IF is_prime THEN
            r := r || i || ' ';
        END IF;
    END LOOP;
    RETURN r;
END;
$$

query
SELECT primes(50)
----
primes text
2 3 5 7 11 13 17 19 23 29 31 37 41 43 47

statement ok
CREATE FUNCTION collatz(n bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    steps integer := 0;
BEGIN
    WHILE n > 1 LOOP
        n := CASE WHEN n % 2 = 0 THEN n / 2 ELSE 3 * n + 1 END;
        steps := steps + 1;
    END LOOP;
    RETURN steps;
END;
$$

query
SELECT collatz(27), collatz(1), collatz(837799)
----
collatz integer | collatz integer | collatz integer
111 | 0 | 524

statement error 42601
CREATE FUNCTION exit_without_loop() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    EXIT;
END;
$$

statement error 42601
CREATE FUNCTION continue_of_block() RETURNS integer LANGUAGE plpgsql AS $$
<<b>>
BEGIN
    LOOP
        CONTINUE b;
    END LOOP;
END;
$$
