-- A shop: filled, indexed, grouped, joined, searched, changed, rolled back, vacuumed.
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE item (id INTEGER PRIMARY KEY, customer INTEGER, product TEXT, price REAL, day INTEGER);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
INSERT INTO customer SELECT i, 'customer ' || (i * 7919 % 2000), 'city ' || (i * 31 % 40) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
INSERT INTO item SELECT i, i * 7907 % 2000 + 1, 'product ' || (i * 104729 % 500), (i * 37 % 1000) / 10.0, i % 365 FROM n;
COMMIT;
CREATE INDEX item_customer ON item (customer);
CREATE INDEX item_product ON item (product, day);
SELECT city, count(*), round(sum(price), 2) FROM customer JOIN item ON item.customer = customer.id
  GROUP BY city ORDER BY 3 DESC LIMIT 5;
SELECT product, max(price) - min(price), avg(day) FROM item GROUP BY product ORDER BY product LIMIT 5;
SELECT count(DISTINCT customer) FROM item WHERE product BETWEEN 'product 1' AND 'product 2' AND day > 100;
SELECT name FROM customer WHERE name LIKE '%99%' ORDER BY name DESC LIMIT 3;
BEGIN;
UPDATE item SET price = price * 1.1 WHERE day % 7 = 0;
DELETE FROM item WHERE customer % 10 = 3;
SELECT count(*), round(total(price), 2) FROM item;
ROLLBACK;
DELETE FROM item WHERE id % 5 = 0;
SELECT count(*), round(total(price), 2), group_concat(DISTINCT day % 3) FROM item;
SELECT day, sum(price) OVER (ORDER BY day ROWS 3 PRECEDING) FROM (SELECT day, sum(price) AS price FROM item GROUP BY day) LIMIT 4;
VACUUM;
PRAGMA integrity_check;
