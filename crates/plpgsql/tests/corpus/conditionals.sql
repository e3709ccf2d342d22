# IF and CASE, statements and expressions.

statement ok
CREATE FUNCTION if_only(a integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r text := '-';
BEGIN
    IF a > 0 THEN
        r := '+';
    END IF;
    RETURN r;
END;
$$

query
SELECT if_only(1), if_only(0), if_only(NULL)
----
if_only text | if_only text | if_only text
+ | - | -

statement ok
CREATE FUNCTION grade(a integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    IF a >= 90 THEN
        RETURN 'A';
    ELSIF a >= 80 THEN
        RETURN 'B';
    ELSEIF a >= 70 THEN
        RETURN 'C';
    ELSE
        IF a IS NULL THEN
            RETURN '?';
        ELSE
            RETURN 'F';
        END IF;
    END IF;
END;
$$

query
SELECT grade(95), grade(90), grade(85), grade(70), grade(69), grade(NULL)
----
grade text | grade text | grade text | grade text | grade text | grade text
A | A | B | C | F | ?

# The first true branch alone is evaluated.

statement ok
CREATE FUNCTION first_branch(a integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    IF a = 1 THEN
        RETURN 'one';
    ELSIF 10 / (a - 1) > 5 THEN
        RETURN 'many';
    END IF;
    RETURN 'none';
END;
$$

query
SELECT first_branch(1), first_branch(2), first_branch(5)
----
first_branch text | first_branch text | first_branch text
one | many | none

statement ok
CREATE FUNCTION short_circuit(a integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE WHEN a <> 0 THEN 10 / a > 1 ELSE false END;
END;
$$

query
SELECT short_circuit(0), short_circuit(5), short_circuit(20)
----
short_circuit boolean | short_circuit boolean | short_circuit boolean
f | t | f

statement ok
CREATE FUNCTION simple_case(a integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r text;
BEGIN
    CASE a
        WHEN 1 THEN
            r := 'one';
        WHEN 2, 3, 5 THEN
            r := 'prime';
        WHEN 4 + 0 THEN
            r := 'four';
        ELSE
            r := 'other';
    END CASE;
    RETURN r;
END;
$$

query
SELECT simple_case(1), simple_case(2), simple_case(5), simple_case(4), simple_case(9), simple_case(NULL)
----
simple_case text | simple_case text | simple_case text | simple_case text | simple_case text | simple_case text
one | prime | prime | four | other | other

statement ok
CREATE FUNCTION searched_case(a integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    CASE
        WHEN a < 0 THEN RETURN 'negative';
        WHEN a = 0 THEN RETURN 'zero';
        WHEN a < 10 THEN RETURN 'small';
        ELSE NULL;
    END CASE;
    RETURN 'large';
END;
$$

query
SELECT searched_case(-1), searched_case(0), searched_case(5), searched_case(50), searched_case(NULL)
----
searched_case text | searched_case text | searched_case text | searched_case text | searched_case text
negative | zero | small | large | large

statement ok
CREATE FUNCTION case_without_else(a integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    CASE a
        WHEN 1 THEN RETURN 'one';
        WHEN 2 THEN RETURN 'two';
    END CASE;
END;
$$

query
SELECT case_without_else(1), case_without_else(2)
----
case_without_else text | case_without_else text
one | two

statement error 20000
SELECT case_without_else(3)

statement error 20000
SELECT case_without_else(NULL)

statement ok
CREATE FUNCTION case_not_found_handled(a integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    CASE WHEN a = 1 THEN
        RETURN 'one';
    END CASE;
EXCEPTION WHEN case_not_found THEN
    RETURN 'none';
END;
$$

query
SELECT case_not_found_handled(1), case_not_found_handled(2)
----
case_not_found_handled text | case_not_found_handled text
one | none

statement ok
CREATE FUNCTION text_case(a text) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    CASE lower(a)
        WHEN 'x', 'y' THEN RETURN 1;
        WHEN '' THEN RETURN 2;
        ELSE RETURN 3;
    END CASE;
END;
$$

query
SELECT text_case('X'), text_case('y'), text_case(''), text_case('xy'), text_case(NULL)
----
text_case integer | text_case integer | text_case integer | text_case integer | text_case integer
1 | 1 | 2 | 3 | 3

# The operand is computed once.

statement ok
CREATE TABLE counter (n integer NOT NULL)

statement count 1
INSERT INTO counter VALUES (0)

statement ok
CREATE FUNCTION next_number() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v integer;
BEGIN
    UPDATE counter SET n = n + 1 RETURNING n INTO v;
    RETURN v;
END;
$$

statement ok
CREATE FUNCTION operand_once() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    CASE next_number()
        WHEN 2 THEN RETURN 'two';
        WHEN 3 THEN RETURN 'three';
        WHEN 1 THEN RETURN 'one';
    END CASE;
END;
$$

query
SELECT operand_once()
----
operand_once text
one

query
SELECT * FROM counter
----
n integer
1

# Expressions.

statement ok
CREATE FUNCTION case_types(a integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    n numeric;
    t text;
BEGIN
    n := CASE WHEN a = 1 THEN 1 WHEN a = 2 THEN 2.5 END;
    t := CASE a % 2 WHEN 0 THEN 'even' ELSE 'odd' END;
    RETURN coalesce(n::text, 'null') || t || (CASE WHEN n > 1 THEN 'big' ELSE 'small' END);
END;
$$

query
SELECT case_types(1), case_types(2), case_types(3)
----
case_types text | case_types text | case_types text
1oddsmall | 2.5evenbig | nulloddsmall

statement ok
CREATE FUNCTION nested_case(a integer, b integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE WHEN a > b THEN CASE WHEN a > 10 THEN 3 ELSE 2 END WHEN a = b THEN 1 ELSE 0 END;
END;
$$

query
SELECT nested_case(20, 1), nested_case(5, 1), nested_case(1, 1), nested_case(0, 1), nested_case(NULL, 1)
----
nested_case integer | nested_case integer | nested_case integer | nested_case integer | nested_case integer
3 | 2 | 1 | 0 | 0

statement ok
CREATE FUNCTION condition_is_query(a integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM counter WHERE n = a) THEN
        RETURN 'yes';
    END IF;
    IF (SELECT n FROM counter) < a THEN
        RETURN 'less';
    END IF;
    RETURN 'no';
END;
$$

query
SELECT condition_is_query(1), condition_is_query(5), condition_is_query(0)
----
condition_is_query text | condition_is_query text | condition_is_query text
yes | less | no

statement ok
CREATE FUNCTION text_condition(a text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    IF a THEN
        RETURN 'yes';
    END IF;
    RETURN 'no';
END;
$$

query
SELECT text_condition('t'), text_condition('no')
----
text_condition text | text_condition text
yes | no

statement error 22P02
SELECT text_condition('what')
