CREATE TABLE account (id integer PRIMARY KEY, cents bigint CHECK (cents >= 0));
INSERT INTO account VALUES (1, 100), (2, 0);
CREATE PROCEDURE pay(p_from integer, p_to integer, p_cents bigint) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE account SET cents = cents - p_cents WHERE id = p_from;
    UPDATE account SET cents = cents + p_cents WHERE id = p_to;
END $$;

-- test: money moves
CALL pay(1, 2, 30);
SELECT cents = 70 FROM account WHERE id = 1;
SELECT cents = 30 FROM account WHERE id = 2;

-- test: nobody pays more than there is
-- error: 23514
CALL pay(1, 2, 101);
SELECT sum(cents) = 100 FROM account;
