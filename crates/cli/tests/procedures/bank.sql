CREATE TABLE account (id integer PRIMARY KEY, cents bigint CHECK (cents >= 0)) PARTITION BY HASH (id);
INSERT INTO account VALUES (1, 100), (2, 0), (3, 5);
CREATE FUNCTION withdraw(p_id integer, p_cents bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_left bigint;
BEGIN
    RAISE NOTICE 'before % go', p_cents;
    UPDATE account SET cents = cents - p_cents WHERE id = p_id RETURNING cents INTO v_left;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no account %', p_id USING ERRCODE = 'P0042', DETAIL = 'It is not there.',
            HINT = 'Open it.';
    END IF;
    ASSERT v_left <> 13, 'an unlucky rest';
    RETURN v_left;
END $$;
