# Texts: functions, operators, patterns, lengths in characters.

statement ok
CREATE FUNCTION joined(a text, b integer, c numeric) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN a || b || ':' || c || concat(a, NULL, b) || concat_ws('-', a, NULL, b, c);
END;
$$

query
SELECT joined('x', 1, 2.50), joined('', -1, 0)
----
joined text | joined text
x1:2.50x1x-1-2.50 | -1:0-1--1-0

statement ok
CREATE FUNCTION cases(a text, OUT u text, OUT l text, OUT i text) LANGUAGE plpgsql AS $$
BEGIN
    u := upper(a); l := lower(a); i := initcap(a);
END;
$$

query
SELECT * FROM cases('hello World 1x')
----
u text | l text | i text
HELLO WORLD 1X | hello world 1x | Hello World 1x

statement ok
CREATE FUNCTION lengths(a text, OUT c integer, OUT o integer, OUT b integer) LANGUAGE plpgsql AS $$
BEGIN
    c := char_length(a); o := octet_length(a); b := bit_length(a);
END;
$$

query
SELECT * FROM lengths('abc')
----
c integer | o integer | b integer
3 | 3 | 24

query
SELECT * FROM lengths('äöü€')
----
c integer | o integer | b integer
4 | 9 | 72

query
SELECT * FROM lengths('')
----
c integer | o integer | b integer
0 | 0 | 0

statement ok
CREATE FUNCTION parts(a text, f integer, n integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN substring(a FROM f FOR n) || '/' || substr(a, f) || '/' || left(a, n) || '/' || right(a, n);
END;
$$

query
SELECT parts('abcdef', 2, 3), parts('abcdef', 0, 2), parts('abcdef', -1, 4), parts('abcdef', 5, 9), parts('aäbö', 2, 2), parts('', 1, 1)
----
parts text | parts text | parts text | parts text | parts text | parts text
bcd/bcdef/abc/def | a/abcdef/ab/ef | ab/abcdef/abcd/cdef | ef/ef/abcdef/abcdef | äb/äbö/aä/bö | ///

statement error 22011
SELECT parts('abc', 1, -1)

statement ok
CREATE FUNCTION ends(a text, n integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN left(a, n) || '/' || right(a, n);
END;
$$

query
SELECT ends('abcdef', 2), ends('abcdef', -2), ends('abcdef', 0), ends('abcdef', 10), ends('abcdef', -10)
----
ends text | ends text | ends text | ends text | ends text
ab/ef | abcd/cdef | / | abcdef/abcdef | /

statement ok
CREATE FUNCTION found_at(a text, b text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN position(b IN a) || ' ' || strpos(a, b) || ' ' || starts_with(a, b);
END;
$$

query
SELECT found_at('abcabc', 'c'), found_at('abc', ''), found_at('abc', 'x'), found_at('äbc', 'b'), found_at('abc', 'ab')
----
found_at text | found_at text | found_at text | found_at text | found_at text
3 3 false | 1 1 true | 0 0 false | 2 2 false | 1 1 true

statement ok
CREATE FUNCTION trimmed(a text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN '[' || trim(a) || '][' || ltrim(a) || '][' || rtrim(a) || '][' || btrim(a, ' x') || '][' || trim(LEADING 'x' FROM a) || ']';
END;
$$

query
SELECT trimmed('  a b  '), trimmed('xx a x'), trimmed('')
----
trimmed text | trimmed text | trimmed text
[a b][a b  ][  a b][a b][  a b  ] | [xx a x][xx a x][xx a x][a][ a x] | [][][][][]

statement ok
CREATE FUNCTION padded(a text, n integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN '[' || lpad(a, n) || '][' || rpad(a, n, '-=') || '][' || lpad(a, n, '0') || ']';
END;
$$

query
SELECT padded('abc', 5), padded('abc', 2), padded('', 3), padded('abc', 0)
----
padded text | padded text | padded text | padded text
[  abc][abc-=][00abc] | [ab][ab][ab] | [   ][-=-][000] | [][][]

statement ok
CREATE FUNCTION changed(a text, b text, c text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN replace(a, b, c) || ' ' || translate(a, b, c) || ' ' || reverse(a) || ' ' || repeat(b, 3) || ' ' || split_part(a, b, 2);
END;
$$

query
SELECT changed('banana', 'an', 'o'), changed('a-b-c', '-', '+'), changed('abc', 'x', 'y')
----
changed text | changed text | changed text
booa booo ananab ananan | a+b+c a+b+c c-b-a --- b | abc abc cba xxx

statement ok
CREATE FUNCTION characters(a text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN ascii(a) || ' ' || chr(ascii(a) + 1);
END;
$$

query
SELECT characters('a'), characters('Zebra'), characters('ä')
----
characters text | characters text | characters text
97 b | 90 [ | 228 å

statement error 54000
SELECT chr(0)

# LIKE.

statement ok
CREATE FUNCTION matches(a text, b text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN (a LIKE b) || ' ' || (a NOT LIKE b) || ' ' || (a ILIKE b);
END;
$$

query
SELECT matches('abc', 'a%'), matches('abc', '_b_'), matches('abc', 'A%'), matches('abc', '%'), matches('', '%'), matches('abc', 'ab')
----
matches text | matches text | matches text | matches text | matches text | matches text
true false true | true false true | false true true | true false true | true false true | false true false

query
SELECT matches('a%c', 'a\%c'), matches('abc', 'a\%c'), matches('a_c', 'a\_c'), matches('äbc', '_bc'), matches('abcabc', '%b%b%')
----
matches text | matches text | matches text | matches text | matches text
true false true | false true false | true false true | true false true | true false true

statement error 22025
SELECT matches('abc', 'a\')

statement ok
CREATE FUNCTION constant_patterns(a text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN (a LIKE '%ORIGINAL%') || ' ' || (a LIKE 'x%') || ' ' || (a LIKE '%x') || ' ' || (a LIKE 'x_z') || ' ' || (a LIKE 'xyz') || ' ' || (a LIKE 'a!%%' ESCAPE '!');
END;
$$

query
SELECT constant_patterns('xORIGINALx'), constant_patterns('xyz'), constant_patterns('a%b'), constant_patterns('ORIGINA'), constant_patterns('')
----
constant_patterns text | constant_patterns text | constant_patterns text | constant_patterns text | constant_patterns text
true true true false false false | false true false true true false | false false false false false true | false false false false false false | false false false false false false

# Order is that of bytes.

statement ok
CREATE FUNCTION ordered(a text, b text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE WHEN a < b THEN '<' WHEN a = b THEN '=' ELSE '>' END || greatest(a, b);
END;
$$

query
SELECT ordered('a', 'b'), ordered('a', 'B'), ordered('a', 'ab'), ordered('', 'a'), ordered('z', 'ä'), ordered('a', 'a '), ordered('10', '9')
----
ordered text | ordered text | ordered text | ordered text | ordered text | ordered text | ordered text
<b | >a | <ab | <a | <ä | <a | <9

# CHAR and VARCHAR.

statement ok
CREATE TABLE names (id integer PRIMARY KEY, c char(5), v varchar(5))

statement ok
CREATE FUNCTION store(p_id integer, p_text text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    row_c names.c%TYPE;
    row_v names.v%TYPE;
BEGIN
    INSERT INTO names VALUES (p_id, p_text, p_text) RETURNING c, v INTO row_c, row_v;
    RETURN '[' || row_c || '][' || row_v || ']' || length(row_c) || length(row_v) || octet_length(row_c) || (row_c = row_v);
END;
$$

query
SELECT store(1, 'ab'), store(2, 'ab  '), store(3, 'abcde'), store(4, ''), store(5, 'äöü')
----
store text | store text | store text | store text | store text
[ab][ab]225true | [ab][ab  ]245true | [abcde][abcde]555true | [][]005true | [äöü][äöü]338true

statement error 22001
SELECT store(6, 'abcdef')

query
SELECT id, c, v, c || '/' AS cb, v || '/' AS vb, c LIKE 'ab' AS l FROM names ORDER BY id
----
id integer | c character(5) | v character varying(5) | cb text | vb text | l boolean
1 | ab | ab | ab/ | ab/ | f
2 | ab | ab | ab/ | ab  / | f
3 | abcde | abcde | abcde/ | abcde/ | f
4 | (empty) | (empty) | / | / | f
5 | äöü | äöü | äöü/ | äöü/ | f

statement ok
CREATE FUNCTION literals() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN 'it''s' || E'\ttab\\' || U&'\00e4' || $q$dollar 'quoted'$q$ || 'two '
        'lines';
END;
$$

query
SELECT literals()
----
literals text
it's	tab\ädollar 'quoted'two lines

statement ok
CREATE FUNCTION formatted(a text, b integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN format('%s=%s, %I, %L, 100%%', a, b, a, a);
END;
$$

query
SELECT formatted('x', 1), formatted('a b', NULL), formatted('it''s', 3)
----
formatted text | formatted text | formatted text
x=1, x, 'x', 100% | a b=, "a b", 'a b', 100% | it's=3, "it's", 'it''s', 100%

statement ok
CREATE FUNCTION number_texts(a integer, b numeric, c double precision, d boolean) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN a::text || ' ' || b::text || ' ' || c::text || ' ' || d::text || ' ' || cast(a AS varchar(2)) || ' ' || length(b::text);
END;
$$

query
SELECT number_texts(12345, 1.500, 0.1, true), number_texts(-1, 0.00, 1e20, false), number_texts(0, -7, 1e-7, true)
----
number_texts text | number_texts text | number_texts text
12345 1.500 0.1 true 12 5 | -1 0.00 1e+20 false -1 4 | 0 -7 1e-07 true 0 2

# A text that is built up.

statement ok
CREATE FUNCTION alphabet(n integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text := '';
BEGIN
    FOR i IN 1..n LOOP
        result := result || chr(96 + i);
    END LOOP;
    RETURN result;
END;
$$

query
SELECT alphabet(26), alphabet(0), length(alphabet(1)), length(repeat(alphabet(10), 1000))
----
alphabet text | alphabet text | length integer | length integer
abcdefghijklmnopqrstuvwxyz | (empty) | 1 | 10000
