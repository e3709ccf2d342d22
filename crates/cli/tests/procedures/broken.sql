CREATE TABLE t (a integer PRIMARY KEY);
INSERT INTO t VALUES (1),
    (1);

-- test: never run
SELECT true;
