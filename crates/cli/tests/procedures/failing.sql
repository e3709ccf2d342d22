-- test: statements of one test see what those before did
SELECT withdraw(1, 10) = 90;
UPDATE account SET cents = cents + 1;
INSERT INTO account VALUES (4, 0);
DELETE FROM account WHERE id = 3;
SELECT sum(cents) = 92 FROM account;
SELECT id = 1 OR cents < 2 FROM account ORDER BY id;

-- test: rows are as they were
SELECT count(*) = 3 AND sum(cents) = 105 FROM account;

-- test: a condition of several rows
SELECT 1;
SELECT cents = 0
FROM account ORDER BY id;

-- test: a procedure raises
SELECT withdraw(9, 10);

-- test: a procedure asserts
SELECT withdraw(1, 87);

-- test: another error than expected
-- error: 23514
SELECT withdraw(9, 10);

-- test: an expected error that does not come
-- error: P0042
SELECT withdraw(1, 10);

-- test: a mistake has its place
SELECT withdraw(1, 10);
SELECT cents,
       nonsense FROM account;

-- test: definitions stand before
CREATE TABLE other (a integer);

-- test: a condition without rows
SELECT cents > 0 FROM account WHERE id = 77;

-- test: a statement that failed has done nothing
-- error: 23505
INSERT INTO account VALUES (5, 0), (1, 0);
-- error: P0004
SELECT withdraw(1, 87);
SELECT count(*) = 3 AND sum(cents) = 105 FROM account;

-- test: rows are still as they were
SELECT count(*) = 3 AND sum(cents) = 105 FROM account;
