INSERT INTO none (customer) SELECT a FROM flown;
INSERT INTO flown (a) VALUES ('three');
