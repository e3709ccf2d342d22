-- The five transactions of TPC-C, clause 2, as PL/pgSQL functions: the same source for PostgreSQL and
-- for Albireo.
--
-- They read and write the same rows and return the same values as the native procedures in
-- crates/bench/src/tpcc/procedures, over the tables of crates/bench/src/tpcc/schema.rs. Every function
-- is one transaction; whoever calls it commits. Parameters begin with p_, variables with v_, results
-- with r_. Results leave out what the caller passed in.
--
-- A row that the population promises and that is missing is an error: no_data_found here, where the
-- native procedures say raise_exception.
--
-- A customer is named by p_c_id, or by p_c_last where p_c_id is NULL. First names are to be compared by
-- their bytes, as the collation "C" does; of two customers with the same the one with the lower number
-- comes first, so that the same is found wherever the rows lie.

-- Clause 2.4. The arrays have one element for each line of the order. An item that does not exist is
-- an error, which undoes the order.
CREATE OR REPLACE FUNCTION new_order(
    p_w_id smallint,
    p_d_id smallint,
    p_c_id integer,
    p_i_id integer[],
    p_supply_w_id smallint[],
    p_quantity smallint[],
    OUT r_o_id integer,
    OUT r_o_entry_d timestamp,
    OUT r_c_last varchar(16),
    OUT r_c_credit char(2),
    OUT r_c_discount numeric(4,4),
    OUT r_w_tax numeric(4,4),
    OUT r_d_tax numeric(4,4),
    OUT r_total_amount numeric(12,2),
    OUT r_i_name varchar(24)[],
    OUT r_s_quantity smallint[],
    OUT r_brand_generic char(1)[],
    OUT r_i_price numeric(5,2)[],
    OUT r_ol_amount numeric(6,2)[]
) LANGUAGE plpgsql AS $$
DECLARE
    v_ol_cnt smallint := cardinality(p_i_id);
    v_all_local smallint := 1;
    v_i_id integer;
    v_supply_w_id smallint;
    v_quantity smallint;
    v_i_name varchar(24);
    v_i_price numeric(5,2);
    v_original boolean;
    v_s_quantity smallint;
    v_dist_info char(24);
    v_ol_amount numeric(6,2);
    v_total numeric(12,2) := 0;
BEGIN
    r_o_entry_d := now();

    SELECT w_tax INTO STRICT r_w_tax FROM warehouse WHERE w_id = p_w_id;

    UPDATE district
       SET d_next_o_id = d_next_o_id + 1
     WHERE d_w_id = p_w_id AND d_id = p_d_id
    RETURNING d_next_o_id - 1, d_tax INTO STRICT r_o_id, r_d_tax;

    FOREACH v_supply_w_id IN ARRAY p_supply_w_id LOOP
        IF v_supply_w_id <> p_w_id THEN
            v_all_local := 0;
        END IF;
    END LOOP;

    FOR v_number IN 1 .. v_ol_cnt LOOP
        v_i_id := p_i_id[v_number];
        v_supply_w_id := p_supply_w_id[v_number];
        v_quantity := p_quantity[v_number];

        SELECT i_name, i_price, i_data LIKE '%ORIGINAL%'
          INTO v_i_name, v_i_price, v_original
          FROM item
         WHERE i_id = v_i_id;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'item number is not valid';
        END IF;

        UPDATE stock
           SET s_quantity = CASE WHEN s_quantity - v_quantity >= 10 THEN s_quantity - v_quantity
                                 ELSE s_quantity - v_quantity + 91 END,
               s_ytd = s_ytd + v_quantity,
               s_order_cnt = s_order_cnt + 1,
               s_remote_cnt = s_remote_cnt + CASE WHEN v_supply_w_id <> p_w_id THEN 1 ELSE 0 END
         WHERE s_w_id = v_supply_w_id AND s_i_id = v_i_id
        RETURNING s_quantity, v_original AND s_data LIKE '%ORIGINAL%',
                  CASE p_d_id WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03
                              WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06
                              WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09
                              WHEN 10 THEN s_dist_10 END
          INTO STRICT v_s_quantity, v_original, v_dist_info;

        v_ol_amount := v_i_price * v_quantity;
        v_total := v_total + v_ol_amount;

        INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id,
                                ol_delivery_d, ol_quantity, ol_amount, ol_dist_info)
        VALUES (r_o_id, p_d_id, p_w_id, v_number, v_i_id, v_supply_w_id,
                NULL, v_quantity, v_ol_amount, v_dist_info);

        r_i_name[v_number] := v_i_name;
        r_s_quantity[v_number] := v_s_quantity;
        IF v_original THEN
            r_brand_generic[v_number] := 'B';
        ELSE
            r_brand_generic[v_number] := 'G';
        END IF;
        r_i_price[v_number] := v_i_price;
        r_ol_amount[v_number] := v_ol_amount;
    END LOOP;

    -- What follows the loop is fetched with what its rounds read.
    INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
    VALUES (r_o_id, p_d_id, p_w_id, p_c_id, r_o_entry_d, NULL, v_ol_cnt, v_all_local);

    INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (r_o_id, p_d_id, p_w_id);

    SELECT c_last, c_credit, c_discount
      INTO STRICT r_c_last, r_c_credit, r_c_discount
      FROM customer
     WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_id = p_c_id;

    r_total_amount := round(v_total * (1 - r_c_discount) * (1 + r_w_tax + r_d_tax), 2);
END;
$$;

-- Clause 2.5.
CREATE OR REPLACE FUNCTION payment(
    p_w_id smallint,
    p_d_id smallint,
    p_c_w_id smallint,
    p_c_d_id smallint,
    p_c_id integer,
    p_c_last varchar(16),
    p_h_amount numeric(6,2),
    OUT r_c_id integer,
    OUT r_c_first varchar(16),
    OUT r_c_middle char(2),
    OUT r_c_last varchar(16),
    OUT r_w_street_1 varchar(20),
    OUT r_w_street_2 varchar(20),
    OUT r_w_city varchar(20),
    OUT r_w_state char(2),
    OUT r_w_zip char(9),
    OUT r_d_street_1 varchar(20),
    OUT r_d_street_2 varchar(20),
    OUT r_d_city varchar(20),
    OUT r_d_state char(2),
    OUT r_d_zip char(9),
    OUT r_c_street_1 varchar(20),
    OUT r_c_street_2 varchar(20),
    OUT r_c_city varchar(20),
    OUT r_c_state char(2),
    OUT r_c_zip char(9),
    OUT r_c_phone char(16),
    OUT r_c_since timestamp,
    OUT r_c_credit char(2),
    OUT r_c_credit_lim numeric(12,2),
    OUT r_c_discount numeric(4,4),
    OUT r_c_balance numeric(12,2),
    OUT r_c_data varchar(200),
    OUT r_h_date timestamp
) LANGUAGE plpgsql AS $$
DECLARE
    v_namesakes integer;
    v_w_name varchar(10);
    v_d_name varchar(10);
BEGIN
    r_h_date := now();

    UPDATE warehouse
       SET w_ytd = w_ytd + p_h_amount
     WHERE w_id = p_w_id
    RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip
      INTO STRICT v_w_name, r_w_street_1, r_w_street_2, r_w_city, r_w_state, r_w_zip;

    UPDATE district
       SET d_ytd = d_ytd + p_h_amount
     WHERE d_w_id = p_w_id AND d_id = p_d_id
    RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip
      INTO STRICT v_d_name, r_d_street_1, r_d_street_2, r_d_city, r_d_state, r_d_zip;

    r_c_id := p_c_id;
    IF r_c_id IS NULL THEN
        -- The one in the middle, rounded up, of those with this name.
        SELECT count(*)
          INTO v_namesakes
          FROM customer
         WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_last = p_c_last;
        SELECT c_id
          INTO STRICT r_c_id
          FROM customer
         WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_last = p_c_last
         ORDER BY c_first, c_id
         LIMIT 1 OFFSET (v_namesakes - 1) / 2;
    END IF;

    UPDATE customer
       SET c_balance = c_balance - p_h_amount,
           c_ytd_payment = c_ytd_payment + p_h_amount,
           c_payment_cnt = c_payment_cnt + 1
     WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_id = r_c_id
    RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip,
              c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance
      INTO STRICT r_c_first, r_c_middle, r_c_last, r_c_street_1, r_c_street_2, r_c_city, r_c_state, r_c_zip,
              r_c_phone, r_c_since, r_c_credit, r_c_credit_lim, r_c_discount, r_c_balance;

    IF r_c_credit = 'BC' THEN
        UPDATE customer
           SET c_data = left(r_c_id || ' ' || p_c_d_id || ' ' || p_c_w_id || ' ' || p_d_id || ' ' || p_w_id
                             || ' ' || p_h_amount::numeric(6,2) || '|' || c_data, 500)
         WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_id = r_c_id
        RETURNING left(c_data, 200) INTO STRICT r_c_data;
    END IF;

    INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
    VALUES (r_c_id, p_c_d_id, p_c_w_id, p_d_id, p_w_id, r_h_date, p_h_amount,
            v_w_name || '    ' || v_d_name);
END;
$$;

-- Clause 2.6: the customer's last order. The arrays have one element for each of its lines.
CREATE OR REPLACE FUNCTION order_status(
    p_w_id smallint,
    p_d_id smallint,
    p_c_id integer,
    p_c_last varchar(16),
    OUT r_c_id integer,
    OUT r_c_first varchar(16),
    OUT r_c_middle char(2),
    OUT r_c_last varchar(16),
    OUT r_c_balance numeric(12,2),
    OUT r_o_id integer,
    OUT r_o_entry_d timestamp,
    OUT r_o_carrier_id smallint,
    OUT r_ol_supply_w_id smallint[],
    OUT r_ol_i_id integer[],
    OUT r_ol_quantity smallint[],
    OUT r_ol_amount numeric(6,2)[],
    OUT r_ol_delivery_d timestamp[]
) LANGUAGE plpgsql AS $$
DECLARE
    v_namesakes integer;
    v_lines integer := 0;
    v_line record;
BEGIN
    r_c_id := p_c_id;
    IF r_c_id IS NULL THEN
        -- The one in the middle, rounded up, of those with this name.
        SELECT count(*)
          INTO v_namesakes
          FROM customer
         WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_last = p_c_last;
        SELECT c_id
          INTO STRICT r_c_id
          FROM customer
         WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_last = p_c_last
         ORDER BY c_first, c_id
         LIMIT 1 OFFSET (v_namesakes - 1) / 2;
    END IF;

    SELECT c_first, c_middle, c_last, c_balance
      INTO STRICT r_c_first, r_c_middle, r_c_last, r_c_balance
      FROM customer
     WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_id = r_c_id;

    SELECT o_id, o_entry_d, o_carrier_id
      INTO STRICT r_o_id, r_o_entry_d, r_o_carrier_id
      FROM orders
     WHERE o_w_id = p_w_id AND o_d_id = p_d_id AND o_c_id = r_c_id
     ORDER BY o_id DESC
     LIMIT 1;

    FOR v_line IN
        SELECT ol_supply_w_id, ol_i_id, ol_quantity, ol_amount, ol_delivery_d
          FROM order_line
         WHERE ol_w_id = p_w_id AND ol_d_id = p_d_id AND ol_o_id = r_o_id
         ORDER BY ol_number
    LOOP
        v_lines := v_lines + 1;
        r_ol_supply_w_id[v_lines] := v_line.ol_supply_w_id;
        r_ol_i_id[v_lines] := v_line.ol_i_id;
        r_ol_quantity[v_lines] := v_line.ol_quantity;
        r_ol_amount[v_lines] := v_line.ol_amount;
        r_ol_delivery_d[v_lines] := v_line.ol_delivery_d;
    END LOOP;
END;
$$;

-- Clause 2.7, all ten districts at once: the order delivered in each, NULL where none was left.
CREATE OR REPLACE FUNCTION delivery(
    p_w_id smallint,
    p_o_carrier_id smallint,
    OUT r_o_id integer[]
) LANGUAGE plpgsql AS $$
DECLARE
    v_o_id integer;
    v_c_id integer;
    v_c_ids integer[];
    v_total numeric(12,2);
BEGIN
    -- What is read here is old enough to have left the processor's caches. Loops that know the keys of
    -- what they read before they begin have it fetched together.
    FOR v_d_id IN 1 .. 10 LOOP
        SELECT min(no_o_id) INTO v_o_id FROM new_order WHERE no_w_id = p_w_id AND no_d_id = v_d_id;
        r_o_id[v_d_id] := v_o_id;
    END LOOP;

    FOR v_d_id IN 1 .. 10 LOOP
        v_o_id := r_o_id[v_d_id];
        CONTINUE WHEN v_o_id IS NULL;

        DELETE FROM new_order WHERE no_w_id = p_w_id AND no_d_id = v_d_id AND no_o_id = v_o_id;

        UPDATE orders
           SET o_carrier_id = p_o_carrier_id
         WHERE o_w_id = p_w_id AND o_d_id = v_d_id AND o_id = v_o_id
        RETURNING o_c_id INTO STRICT v_c_id;
        v_c_ids[v_d_id] := v_c_id;
    END LOOP;

    FOR v_d_id IN 1 .. 10 LOOP
        v_o_id := r_o_id[v_d_id];
        v_c_id := v_c_ids[v_d_id];
        CONTINUE WHEN v_o_id IS NULL;

        SELECT sum(ol_amount)
          INTO v_total
          FROM order_line
         WHERE ol_w_id = p_w_id AND ol_d_id = v_d_id AND ol_o_id = v_o_id;

        UPDATE order_line
           SET ol_delivery_d = now()
         WHERE ol_w_id = p_w_id AND ol_d_id = v_d_id AND ol_o_id = v_o_id;

        UPDATE customer
           SET c_balance = c_balance + v_total,
               c_delivery_cnt = c_delivery_cnt + 1
         WHERE c_w_id = p_w_id AND c_d_id = v_d_id AND c_id = v_c_id;
    END LOOP;
END;
$$;

-- Clause 2.8: how many different items of the district's last 20 orders are short in stock.
CREATE OR REPLACE FUNCTION stock_level(
    p_w_id smallint,
    p_d_id smallint,
    p_threshold smallint,
    OUT r_low_stock integer
) LANGUAGE plpgsql AS $$
DECLARE
    v_next_o_id integer;
BEGIN
    SELECT d_next_o_id INTO STRICT v_next_o_id FROM district WHERE d_w_id = p_w_id AND d_id = p_d_id;

    SELECT count(DISTINCT s_i_id)
      INTO r_low_stock
      FROM order_line
      JOIN stock ON s_w_id = p_w_id AND s_i_id = ol_i_id
     WHERE ol_w_id = p_w_id AND ol_d_id = p_d_id
       AND ol_o_id >= v_next_o_id - 20 AND ol_o_id < v_next_o_id
       AND s_quantity < p_threshold;
END;
$$;
