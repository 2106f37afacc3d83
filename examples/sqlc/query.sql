-- name: AddCustomer :execlastid
INSERT INTO customers (email, name) VALUES (?, ?);

-- name: AddTwoCustomers :execlastid
INSERT INTO customers (email, name) VALUES (sqlc.arg(email1), sqlc.arg(name1)), (sqlc.arg(email2), sqlc.arg(name2));

-- name: PutCustomer :execlastid
INSERT INTO customers (email, name) VALUES (?, ?)
ON DUPLICATE KEY UPDATE name = VALUES(name);

-- name: ImportCustomer :execresult
INSERT INTO customers (id, email, name) VALUES (sqlc.narg(id), sqlc.arg(email), sqlc.arg(name));

-- name: Customer :one
SELECT id, email, name FROM customers WHERE id = ?;
