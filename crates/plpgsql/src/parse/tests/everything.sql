#variable_conflict use_column
<<outer_block>>
DECLARE
    n integer := 0; -- a comment; with a semicolon
    total CONSTANT numeric(12,2) NOT NULL DEFAULT 1.5;
    name varchar(20) = 'it''s';
    price item.i_price%TYPE;
    line order_line%ROWTYPE;
    r RECORD;
    list integer[];
    other text ARRAY[4];
    "Quoted ä" timestamp with time zone;
    first ALIAS FOR $1;
BEGIN
    n := n + 1;
    line.ol_amount = price * (1 + total);
    list[n + 1] := 7;
    "Quoted ä" := now();
    n := count(*) FROM item WHERE i_id = n;
    IF n > 10 AND NOT (name = 'x') THEN
        NULL;
    ELSIF n = 5 THEN
        RETURN;
    ELSEIF name IS NULL THEN
        n := CASE WHEN n = 1 THEN 2 ELSE 3 END;
    ELSE
        PERFORM f(n), 2 FROM item;
    END IF;
    CASE n
        WHEN 1, 2 THEN n := 3;
        ELSE n := 4;
    END CASE;
    CASE WHEN n = 1 THEN NULL; WHEN n = 2 THEN NULL; END CASE;
    SET LOCAL synchronous_commit TO off;
    <<again>>
    LOOP
        EXIT again WHEN n > 100;
        CONTINUE WHEN n < 10;
        EXIT;
    END LOOP again;
    WHILE n < 20 LOOP n := n + 1; END LOOP;
    FOR i IN REVERSE 10..n BY 2 LOOP
        FOR r IN SELECT i_id, i_price FROM item WHERE i_id IN (1, 2) ORDER BY 1 LOOP
            CONTINUE WHEN false;
        END LOOP;
    END LOOP;
    FOR n, price IN UPDATE item SET i_price = 1 RETURNING i_id, i_price LOOP NULL; END LOOP;
    FOREACH n IN ARRAY list LOOP NULL; END LOOP;
    SELECT i_id, i_price INTO STRICT n, price FROM item WHERE i_id = 1;
    SELECT INTO line * FROM order_line LIMIT 1;
    INSERT INTO item (i_id) VALUES (1), (2) ON CONFLICT DO NOTHING;
    INSERT INTO item SELECT * FROM item RETURNING i_id INTO n;
    WITH a AS (SELECT 1 AS b) SELECT b FROM a INTO n;
    DELETE FROM item WHERE i_id = 1;
    CALL p(1, n);
    GET DIAGNOSTICS n = ROW_COUNT;
    ASSERT n > 0, 'n is ' || n;
    RAISE NOTICE '% of 100 %%', n;
    RAISE;
    RAISE EXCEPTION division_by_zero USING MESSAGE = 'no', HINT := 'yes';
    RAISE WARNING SQLSTATE '22012';
    RAISE USING ERRCODE = 'P0001', DETAIL = $$d$$;
    BEGIN
        UPDATE item SET i_price = 2 WHERE i_id = 1;
    EXCEPTION
        WHEN unique_violation OR SQLSTATE '23503' THEN
            GET STACKED DIAGNOSTICS name = MESSAGE_TEXT, n = RETURNED_SQLSTATE;
        WHEN OTHERS THEN
            NULL;
    END;
    RETURN NEXT n;
    RETURN QUERY SELECT 1, 2;
    EXIT outer_block;
    RETURN n + 1;
END outer_block;
