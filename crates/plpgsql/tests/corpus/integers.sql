# Integer arithmetic: types of results, overflow, division.

statement ok
CREATE FUNCTION add2(a smallint, b smallint) RETURNS smallint LANGUAGE plpgsql AS $$ BEGIN RETURN a + b; END; $$

statement ok
CREATE FUNCTION add4(a integer, b integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN a + b; END; $$

statement ok
CREATE FUNCTION add8(a bigint, b bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN a + b; END; $$

query
SELECT add2(1::smallint, 2::smallint), add4(2147483646, 1), add8(9223372036854775806, 1), add4(NULL, 1)
----
add2 smallint | add4 integer | add8 bigint | add4 integer
3 | 2147483647 | 9223372036854775807 | NULL

statement error 22003
SELECT add2(32767::smallint, 1::smallint)

statement error 22003
SELECT add4(2147483647, 1)

statement error 22003
SELECT add4(-2147483648, -1)

statement error 22003
SELECT add8(9223372036854775807, 1)

statement ok
CREATE FUNCTION sub4(a integer, b integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN a - b; END; $$

statement ok
CREATE FUNCTION sub8(a bigint, b bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN a - b; END; $$

query
SELECT sub4(-2147483647, 1), sub4(0, 2147483647), sub8(-9223372036854775807, 1)
----
sub4 integer | sub4 integer | sub8 bigint
-2147483648 | -2147483647 | -9223372036854775808

statement error 22003
SELECT sub4(-2147483648, 1)

statement error 22003
SELECT sub4(0, -2147483648)

statement error 22003
SELECT sub8(0, -9223372036854775808)

statement ok
CREATE FUNCTION mul2(a smallint, b smallint) RETURNS smallint LANGUAGE plpgsql AS $$ BEGIN RETURN a * b; END; $$

statement ok
CREATE FUNCTION mul4(a integer, b integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN a * b; END; $$

statement ok
CREATE FUNCTION mul8(a bigint, b bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN a * b; END; $$

query
SELECT mul2(181::smallint, 181::smallint), mul4(46340, 46340), mul4(-65536, 32768), mul8(3037000499, 3037000499), mul4(0, NULL)
----
mul2 smallint | mul4 integer | mul4 integer | mul8 bigint | mul4 integer
32761 | 2147395600 | -2147483648 | 9223372030926249001 | NULL

statement error 22003
SELECT mul2(182::smallint, 182::smallint)

statement error 22003
SELECT mul4(46341, 46341)

statement error 22003
SELECT mul8(3037000500, 3037000500)

statement error 22003
SELECT mul8(-9223372036854775808, -1)

statement ok
CREATE FUNCTION div4(a integer, b integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN a / b; END; $$

statement ok
CREATE FUNCTION div8(a bigint, b bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN a / b; END; $$

query
SELECT div4(7, 2), div4(-7, 2), div4(7, -2), div4(-7, -2), div4(0, 5), div8(-9223372036854775808, 2), div4(NULL, 0)
----
div4 integer | div4 integer | div4 integer | div4 integer | div4 integer | div8 bigint | div4 integer
3 | -3 | -3 | 3 | 0 | -4611686018427387904 | NULL

statement error 22012
SELECT div4(1, 0)

statement error 22012
SELECT div8(0, 0)

statement error 22003
SELECT div4(-2147483648, -1)

statement error 22003
SELECT div8(-9223372036854775808, -1)

statement ok
CREATE FUNCTION mod4(a integer, b integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN a % b; END; $$

query
SELECT mod4(7, 3), mod4(-7, 3), mod4(7, -3), mod4(-7, -3), mod4(-2147483648, -1), mod4(6, 3)
----
mod4 integer | mod4 integer | mod4 integer | mod4 integer | mod4 integer | mod4 integer
1 | -1 | 1 | -1 | 0 | 0

statement error 22012
SELECT mod4(1, 0)

statement ok
CREATE FUNCTION negated(a integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN -a; END; $$

query
SELECT negated(5), negated(-2147483647), negated(0), negated(NULL)
----
negated integer | negated integer | negated integer | negated integer
-5 | 2147483647 | 0 | NULL

statement error 22003
SELECT negated(-2147483648)

statement ok
CREATE FUNCTION absolute(a integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN abs(a); END; $$

query
SELECT absolute(-5), absolute(5), absolute(-2147483647)
----
absolute integer | absolute integer | absolute integer
5 | 5 | 2147483647

statement error 22003
SELECT absolute(-2147483648)

# Operands of different widths.

statement ok
CREATE FUNCTION widths(a smallint, b integer, c bigint, OUT x bigint, OUT y integer, OUT z bigint, OUT w boolean) LANGUAGE plpgsql AS $$
BEGIN
    x := a + c;
    y := a * b;
    z := b - c;
    w := a < b AND b < c AND a < c;
END;
$$

query
SELECT * FROM widths(3::smallint, 70000, 5000000000)
----
x bigint | y integer | z bigint | w boolean
5000000003 | 210000 | -4999930000 | t

query
SELECT * FROM widths(3::smallint, -70000, -5000000000)
----
x bigint | y integer | z bigint | w boolean
-4999999997 | -210000 | 4999930000 | f

# The type of the operands decides, not that of the target.

statement ok
CREATE FUNCTION narrow_sum(a integer, b integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
BEGIN
    n := a + b;
    RETURN n;
END;
$$

statement error 22003
SELECT narrow_sum(2000000000, 2000000000)

statement ok
CREATE FUNCTION wide_sum(a integer, b integer) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN a::bigint + b;
END;
$$

query
SELECT wide_sum(2000000000, 2000000000)
----
wide_sum bigint
4000000000

statement ok
CREATE FUNCTION bits(a integer, b integer, OUT x integer, OUT y integer, OUT z integer, OUT n integer, OUT l integer, OUT r integer) LANGUAGE plpgsql AS $$
BEGIN
    x := a & b; y := a | b; z := a # b; n := ~a; l := a << 3; r := a >> 1;
END;
$$

query
SELECT * FROM bits(12, 10)
----
x integer | y integer | z integer | n integer | l integer | r integer
8 | 14 | 6 | -13 | 96 | 6

query
SELECT * FROM bits(-12, 10)
----
x integer | y integer | z integer | n integer | l integer | r integer
0 | -2 | -2 | 11 | -96 | -6

statement ok
CREATE FUNCTION precedence(a integer, b integer, c integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN (a + b * c) || ' ' || ((a + b) * c) || ' ' || (a - b - c) || ' ' || (a / b * c) || ' ' || (-a % b) || ' ' || ((a + b > c) = true);
END;
$$

query
SELECT precedence(7, 2, 3), precedence(-7, 2, 3)
----
precedence text | precedence text
13 27 2 9 -1 true | -1 -15 -12 -9 1 false

statement ok
CREATE FUNCTION functions(a integer, b integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN sign(a) || ' ' || mod(a, b) || ' ' || greatest(a, b) || ' ' || least(a, b) || ' ' || power(a, 2) || ' ' || gcd(a, b);
END;
$$

query
SELECT functions(12, 18), functions(-12, 18)
----
functions text | functions text
1 12 18 12 144 6 | -1 -12 18 -12 144 6

# The result of an expression is fitted to the type returned.

statement ok
CREATE FUNCTION returns_smallint(a integer) RETURNS smallint LANGUAGE plpgsql AS $$ BEGIN RETURN a * 2; END; $$

query
SELECT returns_smallint(16383), returns_smallint(-16384)
----
returns_smallint smallint | returns_smallint smallint
32766 | -32768

statement error 22003
SELECT returns_smallint(16384)

# Overflow in the middle is an error, whatever follows; what is not evaluated is none.

statement ok
CREATE FUNCTION overflow_within(a integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN a * 1000 / 1000; END; $$

statement error 22003
SELECT overflow_within(3000000)

statement ok
CREATE FUNCTION guarded(a integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    IF a = 0 THEN
        RETURN 0;
    END IF;
    RETURN 100 / a;
END;
$$

query
SELECT guarded(0), guarded(3)
----
guarded integer | guarded integer
0 | 33

statement ok
CREATE FUNCTION guarded_by_case(a integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE WHEN a = 0 THEN -1 ELSE 100 / a END;
END;
$$

query
SELECT guarded_by_case(0), guarded_by_case(7)
----
guarded_by_case integer | guarded_by_case integer
-1 | 14
