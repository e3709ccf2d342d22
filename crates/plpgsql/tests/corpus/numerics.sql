# NUMERIC: scales of results, rounding, division, overflow; and floats.

statement ok
CREATE FUNCTION operations(a numeric, b numeric, OUT s numeric, OUT d numeric, OUT p numeric) LANGUAGE plpgsql AS $$
BEGIN
    s := a + b; d := a - b; p := a * b;
END;
$$

query
SELECT * FROM operations(1.50, 2.250)
----
s numeric | d numeric | p numeric
3.750 | -0.750 | 3.37500

query
SELECT * FROM operations(-0.01, 100)
----
s numeric | d numeric | p numeric
99.99 | -100.01 | -1.00

query
SELECT * FROM operations(12345678901234567890.123, 98765432109876543210.4567)
----
s numeric | d numeric | p numeric
111111111011111111100.5797 | -86419753208641975320.3337 | 1219326311370217952255250220814972168870.2491741

query
SELECT * FROM operations(NULL, 1)
----
s numeric | d numeric | p numeric
NULL | NULL | NULL

statement ok
CREATE FUNCTION quotient(a numeric, b numeric) RETURNS numeric LANGUAGE plpgsql AS $$ BEGIN RETURN a / b; END; $$

query
SELECT quotient(1, 3), quotient(2, 3), quotient(-2, 3), quotient(10, 4), quotient(1.00, 3), quotient(100000, 7), quotient(0, 5)
----
quotient numeric | quotient numeric | quotient numeric | quotient numeric | quotient numeric | quotient numeric | quotient numeric
0.33333333333333333333 | 0.66666666666666666667 | -0.66666666666666666667 | 2.5000000000000000 | 0.33333333333333333333 | 14285.714285714286 | 0.00000000000000000000

statement error 22012
SELECT quotient(1, 0)

statement error 22012
SELECT quotient(0, 0.00)

statement ok
CREATE FUNCTION remainder(a numeric, b numeric) RETURNS numeric LANGUAGE plpgsql AS $$ BEGIN RETURN a % b; END; $$

query
SELECT remainder(7.5, 2), remainder(-7.5, 2), remainder(7.5, -2), remainder(1, 0.3)
----
remainder numeric | remainder numeric | remainder numeric | remainder numeric
1.5 | -1.5 | 1.5 | 0.1

statement error 22012
SELECT remainder(1, 0)

statement ok
CREATE FUNCTION rounded(a numeric, n integer) RETURNS numeric LANGUAGE plpgsql AS $$ BEGIN RETURN round(a, n); END; $$

query
SELECT rounded(2.345, 2), rounded(-2.345, 2), rounded(2.344999, 2), rounded(1234.5, -2), rounded(1250, -2), rounded(0.5, 0), rounded(1.5, 0), rounded(7, 3)
----
rounded numeric | rounded numeric | rounded numeric | rounded numeric | rounded numeric | rounded numeric | rounded numeric | rounded numeric
2.35 | -2.35 | 2.34 | 1200 | 1300 | 1 | 2 | 7.000

statement ok
CREATE FUNCTION whole(a numeric, OUT c numeric, OUT f numeric, OUT t numeric, OUT r numeric, OUT g numeric, OUT m numeric) LANGUAGE plpgsql AS $$
BEGIN
    c := ceil(a); f := floor(a); t := trunc(a, 1); r := round(a); g := sign(a); m := abs(a);
END;
$$

query
SELECT * FROM whole(2.55)
----
c numeric | f numeric | t numeric | r numeric | g numeric | m numeric
3 | 2 | 2.5 | 3 | 1 | 2.55

query
SELECT * FROM whole(-2.55)
----
c numeric | f numeric | t numeric | r numeric | g numeric | m numeric
-2 | -3 | -2.5 | -3 | -1 | 2.55

query
SELECT * FROM whole(-0.4)
----
c numeric | f numeric | t numeric | r numeric | g numeric | m numeric
0 | -1 | -0.4 | 0 | -1 | 0.4

# Columns and variables have their scale and precision.

statement ok
CREATE FUNCTION tax(price numeric, rate numeric) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    net numeric(8,2) := price;
    percent numeric(4,4) := rate;
    gross numeric(8,2);
BEGIN
    gross := net * (1 + percent);
    RETURN gross;
END;
$$

query
SELECT tax(19.99, 0.19), tax(0.05, 0.1), tax(-0.05, 0.1), tax(999999.99, 0), tax(100, 0.00005)
----
tax numeric | tax numeric | tax numeric | tax numeric | tax numeric
23.79 | 0.06 | -0.06 | 999999.99 | 100.01

statement error 22003
SELECT tax(999999.99, 0.1)

statement error 22003
SELECT tax(1, 1)

statement error 22003
SELECT tax(1000000, 0)

# Mixed with integers and floats.

statement ok
CREATE FUNCTION mixed(i integer, n numeric, OUT a numeric, OUT b numeric, OUT c boolean, OUT d numeric) LANGUAGE plpgsql AS $$
BEGIN
    a := i + n; b := i / n; c := i = n; d := i / 2 * n;
END;
$$

query
SELECT * FROM mixed(3, 1.50)
----
a numeric | b numeric | c boolean | d numeric
4.50 | 2.0000000000000000 | f | 1.50

query
SELECT * FROM mixed(2, 2.000)
----
a numeric | b numeric | c boolean | d numeric
4.000 | 1.00000000000000000000 | t | 2.000

statement ok
CREATE FUNCTION to_whole(n numeric, OUT a integer, OUT b bigint, OUT c smallint) LANGUAGE plpgsql AS $$
BEGIN
    a := n; b := n; c := n;
END;
$$

query
SELECT * FROM to_whole(12.5)
----
a integer | b bigint | c smallint
13 | 13 | 13

query
SELECT * FROM to_whole(-12.5)
----
a integer | b bigint | c smallint
-13 | -13 | -13

statement error 22003
SELECT * FROM to_whole(40000)

statement ok
CREATE FUNCTION comparisons(a numeric, b numeric) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN (a < b) || ' ' || (a <= b) || ' ' || (a = b) || ' ' || (a <> b) || ' ' || (a > b) || ' ' || (a BETWEEN b AND b + 1);
END;
$$

query
SELECT comparisons(1.0, 1.00), comparisons(-1, 1), comparisons(1.01, 1.001)
----
comparisons text | comparisons text | comparisons text
false true true false false true | true true false true false false | false false false true true true

statement ok
CREATE FUNCTION accumulated(n integer) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    total numeric(12,2) := 0;
BEGIN
    FOR i IN 1..n LOOP
        total := total + 0.01 * i;
    END LOOP;
    RETURN total;
END;
$$

query
SELECT accumulated(0), accumulated(1), accumulated(1000)
----
accumulated numeric | accumulated numeric | accumulated numeric
0.00 | 0.01 | 5005.00

statement ok
CREATE FUNCTION parsed(p text) RETURNS numeric LANGUAGE plpgsql AS $$ BEGIN RETURN p::numeric; END; $$

query
SELECT parsed('1.50'), parsed('-.5'), parsed('1e3'), parsed(' 7 '), parsed('00012.00')
----
parsed numeric | parsed numeric | parsed numeric | parsed numeric | parsed numeric
1.50 | -0.5 | 1000 | 7 | 12.00

statement error 22P02
SELECT parsed('1,5')

statement error 22P02
SELECT parsed('')

# Floats.

statement ok
CREATE FUNCTION floats(a double precision, b double precision, OUT s double precision, OUT d double precision, OUT p double precision, OUT q double precision) LANGUAGE plpgsql AS $$
BEGIN
    s := a + b; d := a - b; p := a * b; q := a / b;
END;
$$

query
SELECT * FROM floats(0.1, 0.2)
----
s double precision | d double precision | p double precision | q double precision
0.30000000000000004 | -0.1 | 0.020000000000000004 | 0.5

query
SELECT * FROM floats(1e15, 3)
----
s double precision | d double precision | p double precision | q double precision
1.000000000000003e+15 | 999999999999997 | 3e+15 | 333333333333333.3

statement error 22012
SELECT * FROM floats(1, 0)

statement error 22003
SELECT * FROM floats(1e308, 1e308)

statement ok
CREATE FUNCTION roots(a double precision) RETURNS double precision LANGUAGE plpgsql AS $$ BEGIN RETURN sqrt(a); END; $$

query
SELECT roots(4), roots(2), roots(0)
----
roots double precision | roots double precision | roots double precision
2 | 1.4142135623730951 | 0

statement error 2201F
SELECT roots(-1)

statement ok
CREATE FUNCTION float_rounding(a double precision, OUT r double precision, OUT i integer, OUT n numeric, OUT f double precision, OUT c double precision) LANGUAGE plpgsql AS $$
BEGIN
    r := round(a); i := a; n := a; f := floor(a); c := ceil(a);
END;
$$

query
SELECT * FROM float_rounding(2.5)
----
r double precision | i integer | n numeric | f double precision | c double precision
2 | 2 | 2.5 | 2 | 3

query
SELECT * FROM float_rounding(-3.5)
----
r double precision | i integer | n numeric | f double precision | c double precision
-4 | -4 | -3.5 | -4 | -3

query
SELECT * FROM float_rounding(0.1)
----
r double precision | i integer | n numeric | f double precision | c double precision
0 | 0 | 0.1 | 0 | 1
