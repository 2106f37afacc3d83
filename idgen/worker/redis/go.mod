module github.com/leafsql/leafsql/idgen/worker/redis

go 1.26.0

require (
	github.com/leafsql/leafsql v0.0.0
	github.com/redis/go-redis/v9 v9.22.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/sys v0.46.0 // indirect
)

replace github.com/leafsql/leafsql => ../../..
