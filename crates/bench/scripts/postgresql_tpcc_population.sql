-- The initial population of TPC-C, clause 4.3.3, for psql. Variables: warehouses, items (100000 by the
-- specification), customers of a district (3000), delivered orders of a district (2100).

-- An a-string of clause 4.3.2.2. Its 62 characters are as likely but for A and z, which come twice.
CREATE FUNCTION pg_temp.alphanumeric(min integer, max integer) RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT left(translate(encode(sha512(random()::text::bytea), 'base64'), E'+/=\n', 'Az'),
                min + floor(random() * (max - min + 1))::integer)
$$;

CREATE FUNCTION pg_temp.uniform(low integer, high integer) RETURNS integer LANGUAGE sql VOLATILE AS $$
    SELECT low + floor(random() * (high - low + 1))::integer
$$;

CREATE FUNCTION pg_temp.zip() RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT lpad(floor(random() * 10000)::text, 4, '0') || '11111'
$$;

-- I_DATA and S_DATA: in a tenth of the rows "ORIGINAL" stands somewhere.
CREATE FUNCTION pg_temp.data() RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_data text := pg_temp.alphanumeric(26, 50);
BEGIN
    IF random() < 0.1 THEN
        v_data := overlay(v_data PLACING 'ORIGINAL' FROM pg_temp.uniform(1, length(v_data) - 7));
    END IF;
    RETURN v_data;
END;
$$;

-- C_LAST of clause 4.3.2.3.
CREATE FUNCTION pg_temp.last_name(number integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT (ARRAY['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])[number / 100 + 1]
        || (ARRAY['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])[number / 10 % 10 + 1]
        || (ARRAY['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])[number % 10 + 1]
$$;

SELECT setseed(0.42);

INSERT INTO item
SELECT i, pg_temp.uniform(1, 10000), pg_temp.alphanumeric(14, 24), pg_temp.uniform(100, 10000) / 100.0,
       pg_temp.data()
  FROM generate_series(1, :items) i;

INSERT INTO warehouse
SELECT w, pg_temp.alphanumeric(6, 10), pg_temp.alphanumeric(10, 20), pg_temp.alphanumeric(10, 20),
       pg_temp.alphanumeric(10, 20), pg_temp.alphanumeric(2, 2), pg_temp.zip(),
       pg_temp.uniform(0, 2000) / 10000.0, 10 * :customers * 10.00
  FROM generate_series(1, :warehouses) w;

INSERT INTO district
SELECT d, w, pg_temp.alphanumeric(6, 10), pg_temp.alphanumeric(10, 20), pg_temp.alphanumeric(10, 20),
       pg_temp.alphanumeric(10, 20), pg_temp.alphanumeric(2, 2), pg_temp.zip(),
       pg_temp.uniform(0, 2000) / 10000.0, :customers * 10.00, :customers + 1
  FROM generate_series(1, :warehouses) w, generate_series(1, 10) d;

-- Names beyond the first thousand by NURand(255, 0, 999), whose constant is 123 here.
INSERT INTO customer
SELECT c, d, w, pg_temp.alphanumeric(8, 16), 'OE',
       pg_temp.last_name(CASE WHEN c <= 1000 THEN c - 1
           ELSE ((pg_temp.uniform(0, 255) | pg_temp.uniform(0, 999)) + 123) % 1000 END),
       pg_temp.alphanumeric(10, 20), pg_temp.alphanumeric(10, 20), pg_temp.alphanumeric(10, 20),
       pg_temp.alphanumeric(2, 2), pg_temp.zip(), lpad(floor(random() * 1e15)::text, 16, '0'), now(),
       CASE WHEN random() < 0.1 THEN 'BC' ELSE 'GC' END, 50000.00, pg_temp.uniform(0, 5000) / 10000.0,
       -10.00, 10.00, 1, 0,
       left(pg_temp.alphanumeric(85, 85) || pg_temp.alphanumeric(85, 85) || pg_temp.alphanumeric(85, 85)
           || pg_temp.alphanumeric(85, 85) || pg_temp.alphanumeric(85, 85) || pg_temp.alphanumeric(85, 85),
           pg_temp.uniform(300, 500))
  FROM generate_series(1, :warehouses) w, generate_series(1, 10) d, generate_series(1, :customers) c;

INSERT INTO history
SELECT c_id, c_d_id, c_w_id, c_d_id, c_w_id, c_since, 10.00, pg_temp.alphanumeric(12, 24)
  FROM customer;

INSERT INTO stock
SELECT i, w, pg_temp.uniform(10, 100),
       pg_temp.alphanumeric(24, 24), pg_temp.alphanumeric(24, 24), pg_temp.alphanumeric(24, 24),
       pg_temp.alphanumeric(24, 24), pg_temp.alphanumeric(24, 24), pg_temp.alphanumeric(24, 24),
       pg_temp.alphanumeric(24, 24), pg_temp.alphanumeric(24, 24), pg_temp.alphanumeric(24, 24),
       pg_temp.alphanumeric(24, 24), 0, 0, 0, pg_temp.data()
  FROM generate_series(1, :warehouses) w, generate_series(1, :items) i;

-- Every customer has one order; the customers of a district stand in random order.
INSERT INTO orders
SELECT o_id, c_d_id, c_w_id, c_id, now(),
       CASE WHEN o_id <= :delivered THEN pg_temp.uniform(1, 10) END, pg_temp.uniform(5, 15), 1
  FROM (SELECT c_w_id, c_d_id, c_id,
               row_number() OVER (PARTITION BY c_w_id, c_d_id ORDER BY random()) AS o_id
          FROM customer) AS c
 ORDER BY c_w_id, c_d_id, o_id;

INSERT INTO order_line
SELECT o_id, o_d_id, o_w_id, number, pg_temp.uniform(1, :items), o_w_id,
       CASE WHEN o_id <= :delivered THEN o_entry_d END, 5,
       CASE WHEN o_id <= :delivered THEN 0 ELSE pg_temp.uniform(1, 999999) / 100.0 END,
       pg_temp.alphanumeric(24, 24)
  FROM orders, generate_series(1, o_ol_cnt) number
 ORDER BY o_w_id, o_d_id, o_id, number;

INSERT INTO new_order SELECT o_id, o_d_id, o_w_id FROM orders WHERE o_id > :delivered;
