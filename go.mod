module github.com/leafsql/leafsql

go 1.26.0

require (
	github.com/DATA-DOG/go-sqlmock v1.5.2
	github.com/go-sql-driver/mysql v1.9.3
	github.com/google/uuid v1.6.0
	github.com/jmoiron/sqlx v1.4.0
	github.com/samber/lo v1.49.1
	go.uber.org/goleak v1.3.0
	golang.org/x/sync v0.21.0
)

require (
	filippo.io/edwards25519 v1.1.1 // indirect
	golang.org/x/text v0.39.0 // indirect
)
