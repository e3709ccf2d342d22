# Dates, timestamps and intervals.

statement ok
CREATE FUNCTION days(a date, n integer, OUT p date, OUT m date, OUT d integer) LANGUAGE plpgsql AS $$
BEGIN
    p := a + n; m := a - n; d := p - m;
END;
$$

query
SELECT * FROM days('2024-02-28', 2)
----
p date | m date | d integer
2024-03-01 | 2024-02-26 | 4

query
SELECT * FROM days('2023-12-31', 1)
----
p date | m date | d integer
2024-01-01 | 2023-12-30 | 2

query
SELECT * FROM days('1970-01-01', -400)
----
p date | m date | d integer
1968-11-27 | 1971-02-05 | -800

statement ok
CREATE FUNCTION to_date_of(a text) RETURNS date LANGUAGE plpgsql AS $$ BEGIN RETURN a::date; END; $$

query
SELECT to_date_of('2024-02-29'), to_date_of('2000-01-01'), to_date_of(NULL)
----
to_date_of date | to_date_of date | to_date_of date
2024-02-29 | 2000-01-01 | NULL

statement error 22008
SELECT to_date_of('2023-02-29')

statement error 22007
SELECT to_date_of('today is nice')

statement ok
CREATE FUNCTION parts_of(a timestamp) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN extract(year FROM a) || ' ' || extract(month FROM a) || ' ' || extract(day FROM a) || ' ' || extract(hour FROM a) || ' ' || extract(minute FROM a) || ' ' || extract(second FROM a) || ' ' || extract(dow FROM a) || ' ' || extract(doy FROM a) || ' ' || date_part('quarter', a);
END;
$$

query
SELECT parts_of('2024-02-29 13:14:15.678'), parts_of('1999-12-31 23:59:59'), parts_of('1969-07-20 00:00:00')
----
parts_of text | parts_of text | parts_of text
2024 2 29 13 14 15.678000 4 60 1 | 1999 12 31 23 59 59.000000 5 365 4 | 1969 7 20 0 0 0.000000 0 201 3

statement ok
CREATE FUNCTION cut(a timestamp) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN date_trunc('year', a) || ', ' || date_trunc('month', a) || ', ' || date_trunc('day', a) || ', ' || date_trunc('hour', a) || ', ' || a::date || ', ' || a::time;
END;
$$

query
SELECT cut('2024-02-29 13:14:15.678')
----
cut text
2024-01-01 00:00:00, 2024-02-01 00:00:00, 2024-02-29 00:00:00, 2024-02-29 13:00:00, 2024-02-29, 13:14:15.678

statement ok
CREATE FUNCTION later(a timestamp, OUT h timestamp, OUT d timestamp, OUT m timestamp, OUT y timestamp, OUT s timestamp) LANGUAGE plpgsql AS $$
BEGIN
    h := a + interval '1 hour'; d := a - interval '1 day'; m := a + interval '1 month'; y := a + interval '1 year'; s := a + 90 * interval '1 second';
END;
$$

query
SELECT * FROM later('2024-01-31 23:30:00')
----
h timestamp without time zone | d timestamp without time zone | m timestamp without time zone | y timestamp without time zone | s timestamp without time zone
2024-02-01 00:30:00 | 2024-01-30 23:30:00 | 2024-02-29 23:30:00 | 2025-01-31 23:30:00 | 2024-01-31 23:31:30

query
SELECT * FROM later('2024-02-29 00:00:00')
----
h timestamp without time zone | d timestamp without time zone | m timestamp without time zone | y timestamp without time zone | s timestamp without time zone
2024-02-29 01:00:00 | 2024-02-28 00:00:00 | 2024-03-29 00:00:00 | 2025-02-28 00:00:00 | 2024-02-29 00:01:30

statement ok
CREATE FUNCTION between_times(a timestamp, b timestamp) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    d interval := b - a;
BEGIN
    RETURN d || ', ' || extract(epoch FROM d) || ', ' || (a < b) || ', ' || (a = b) || ', ' || greatest(a, b);
END;
$$

query
SELECT between_times('2024-01-01', '2024-03-01 12:00'), between_times('2024-01-01 00:00:01', '2024-01-01'), between_times('2024-01-01', '2024-01-01 00:00:00')
----
between_times text | between_times text | between_times text
60 days 12:00:00, 5227200.000000, true, false, 2024-03-01 12:00:00 | -00:00:01, -1.000000, false, false, 2024-01-01 00:00:01 | 00:00:00, 0.000000, false, true, 2024-01-01 00:00:00

statement ok
CREATE FUNCTION date_and_timestamp(a date, b timestamp) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN (a = b) || ' ' || (a < b) || ' ' || a::timestamp || ' ' || (a + interval '12 hours');
END;
$$

query
SELECT date_and_timestamp('2024-05-01', '2024-05-01'), date_and_timestamp('2024-05-01', '2024-05-01 00:00:01')
----
date_and_timestamp text | date_and_timestamp text
true false 2024-05-01 00:00:00 2024-05-01 12:00:00 | false true 2024-05-01 00:00:00 2024-05-01 12:00:00

statement ok
CREATE TABLE events (id integer PRIMARY KEY, happened timestamp NOT NULL, day date)

statement ok
CREATE FUNCTION record_event(p_id integer, p_at timestamp) RETURNS date LANGUAGE plpgsql AS $$
DECLARE
    v_day date;
BEGIN
    INSERT INTO events VALUES (p_id, p_at, p_at) RETURNING day INTO v_day;
    RETURN v_day;
END;
$$

query
SELECT record_event(1, '2024-01-15 10:00'), record_event(2, '2024-02-15 23:59:59.999999'), record_event(3, '2024-02-16')
----
record_event date | record_event date | record_event date
2024-01-15 | 2024-02-15 | 2024-02-16

statement ok
CREATE FUNCTION in_month(p_first date) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM events WHERE happened >= p_first AND happened < p_first + interval '1 month');
END;
$$

query
SELECT in_month('2024-01-01'), in_month('2024-02-01'), in_month('2024-03-01')
----
in_month bigint | in_month bigint | in_month bigint
1 | 2 | 0

query
SELECT * FROM events ORDER BY id
----
id integer | happened timestamp without time zone | day date
1 | 2024-01-15 10:00:00 | 2024-01-15
2 | 2024-02-15 23:59:59.999999 | 2024-02-15
3 | 2024-02-16 00:00:00 | 2024-02-16

statement ok
CREATE FUNCTION shown(a timestamp) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN to_char(a, 'YYYY-MM-DD HH24:MI:SS');
END;
$$

query
SELECT shown('2024-02-29 03:04:05')
----
shown text
2024-02-29 03:04:05

statement ok
CREATE FUNCTION every_day(a date, b date) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    d date := a;
    result text := '';
BEGIN
    WHILE d <= b LOOP
        result := result || extract(day FROM d) || ' ';
        d := d + 1;
    END LOOP;
    RETURN result;
END;
$$

query
SELECT every_day('2024-02-27', '2024-03-02'), every_day('2024-01-02', '2024-01-01')
----
every_day text | every_day text
27 28 29 1 2 | (empty)
