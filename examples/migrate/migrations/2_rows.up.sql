INSERT INTO customers (email, name) VALUES ('ann@x', 'Ann'), ('bob@x', 'Bob');

ALTER TABLE customers ADD COLUMN country CHAR(2) NOT NULL DEFAULT 'de' FIRST;

INSERT INTO customers (email, name) VALUES ('cy@x', 'Cy');
