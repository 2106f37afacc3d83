DELETE FROM customers WHERE email IN ('ann@x', 'bob@x', 'cy@x');
ALTER TABLE customers DROP COLUMN country;
