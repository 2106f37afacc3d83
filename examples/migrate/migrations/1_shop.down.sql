DROP TABLE customers;
DROP TABLE leaf_alloc;
