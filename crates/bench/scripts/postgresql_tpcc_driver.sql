-- A terminal of TPC-C inside PostgreSQL: transactions with random inputs (clauses 2.4.1 to 2.8.1), in the
-- mix 45:43:4:4:4, each committed by itself. Nothing goes through a socket, no statement is parsed twice.

-- CPU time of this process so far, in ticks of the kernel.
CREATE FUNCTION cpu_ticks() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT fields[12]::bigint + fields[13]::bigint
      FROM (SELECT string_to_array(substring(pg_read_file('/proc/self/stat') FROM '.*\) (.*)'), ' ') AS fields) AS f
$$;

-- Runs for p_seconds. Without p_call all inputs are made and no transaction runs, which is what the
-- terminal itself costs.
CREATE PROCEDURE terminal(
    p_warehouses integer,
    p_items integer,
    p_customers integer,
    p_seconds double precision,
    p_call boolean,
    INOUT r_transactions bigint DEFAULT 0,
    INOUT r_new_orders bigint DEFAULT 0,
    INOUT r_rolled_back bigint DEFAULT 0,
    INOUT r_cpu_ticks bigint DEFAULT 0
) LANGUAGE plpgsql AS $$
DECLARE
    v_syllables CONSTANT text[] :=
        ARRAY['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'];
    v_names CONSTANT integer := least(p_customers, 1000);
    v_end CONSTANT timestamptz := clock_timestamp() + p_seconds * interval '1 second';
    v_start bigint := cpu_ticks();
    v_deck integer[];
    v_card integer;
    v_lines integer;
    v_unused boolean;
    v_number integer;
    v_w_id smallint;
    v_d_id smallint;
    v_c_w_id smallint;
    v_c_d_id smallint;
    v_c_id integer;
    v_c_last text;
    v_h_amount numeric(6,2);
    v_i_id integer[];
    v_supply_w_id smallint[];
    v_quantity smallint[];
BEGIN
    LOOP
        IF r_transactions % 100 = 0 THEN
            EXIT WHEN clock_timestamp() >= v_end;
            SELECT array_agg(card ORDER BY random()) INTO v_deck FROM generate_series(1, 100) card;
        END IF;
        v_card := v_deck[r_transactions % 100 + 1];
        r_transactions := r_transactions + 1;
        v_w_id := 1 + floor(random() * p_warehouses);
        v_d_id := 1 + floor(random() * 10);
        -- By name in 60 of 100 cases; New-Order always by number.
        IF v_card > 45 AND random() < 0.6 THEN
            v_number := ((floor(random() * 256)::integer | floor(random() * v_names)::integer) + 42) % v_names;
            v_c_last := v_syllables[v_number / 100 + 1] || v_syllables[v_number / 10 % 10 + 1]
                || v_syllables[v_number % 10 + 1];
            v_c_id := NULL;
        ELSE
            v_c_id := ((floor(random() * 1024)::integer | (1 + floor(random() * p_customers))::integer) + 512)
                % p_customers + 1;
            v_c_last := NULL;
        END IF;
        IF v_card <= 45 THEN
            r_new_orders := r_new_orders + 1;
            v_lines := 5 + floor(random() * 11);
            SELECT array_agg(((floor(random() * 8192)::integer | (1 + floor(random() * p_items))::integer) + 4096)
                             % p_items + 1),
                   array_agg(CASE WHEN p_warehouses > 1 AND random() < 0.01
                                  THEN (v_w_id + floor(random() * (p_warehouses - 1))::integer) % p_warehouses + 1
                                  ELSE v_w_id END),
                   array_agg(1 + floor(random() * 10))
              INTO v_i_id, v_supply_w_id, v_quantity
              FROM generate_series(1, v_lines);
            v_unused := random() < 0.01;
            IF v_unused THEN
                v_i_id[v_lines] := p_items + 1;
                r_rolled_back := r_rolled_back + 1;
                CONTINUE WHEN NOT p_call;
                BEGIN
                    PERFORM new_order(v_w_id, v_d_id, v_c_id, v_i_id, v_supply_w_id, v_quantity);
                    ASSERT false, 'an unused item was ordered';
                EXCEPTION WHEN raise_exception THEN
                    NULL;
                END;
            ELSIF p_call THEN
                PERFORM new_order(v_w_id, v_d_id, v_c_id, v_i_id, v_supply_w_id, v_quantity);
            END IF;
        ELSIF v_card <= 88 THEN
            v_c_w_id := v_w_id;
            v_c_d_id := v_d_id;
            IF p_warehouses > 1 AND random() < 0.15 THEN
                v_c_w_id := (v_w_id + floor(random() * (p_warehouses - 1))::integer) % p_warehouses + 1;
                v_c_d_id := 1 + floor(random() * 10);
            END IF;
            v_h_amount := (100 + floor(random() * 499901)::integer) / 100.0;
            IF p_call THEN
                PERFORM payment(v_w_id, v_d_id, v_c_w_id, v_c_d_id, v_c_id, v_c_last, v_h_amount);
            END IF;
        ELSIF v_card <= 92 THEN
            IF p_call THEN
                PERFORM order_status(v_w_id, v_d_id, v_c_id, v_c_last);
            END IF;
        ELSIF v_card <= 96 THEN
            v_number := 1 + floor(random() * 10);
            IF p_call THEN
                PERFORM delivery(v_w_id, v_number::smallint);
            END IF;
        ELSE
            v_number := 10 + floor(random() * 11);
            IF p_call THEN
                PERFORM stock_level(v_w_id, v_d_id, v_number::smallint);
            END IF;
        END IF;
        COMMIT;
    END LOOP;
    r_cpu_ticks := cpu_ticks() - v_start;
END;
$$;
