module github.com/leafsql/leafsql/idgen/worker/zookeeper

go 1.26.0

require (
	github.com/go-zookeeper/zk v1.0.4
	github.com/leafsql/leafsql v0.0.0
	go.uber.org/goleak v1.3.0
)

replace github.com/leafsql/leafsql => ../../..
