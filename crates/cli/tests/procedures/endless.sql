CREATE FUNCTION endless() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    LOOP
    END LOOP;
END $$;

-- test: short
SELECT true;

-- test: endless
SELECT endless();

-- test: never run
SELECT true;
