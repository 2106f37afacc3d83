package main

// A plot is a picture on a page. Its panels are one below the other, each with a separate scale.
type plot struct {
	name, title string
	panels      []panel
}

type panel struct {
	title, unit string
	bars        []bar
	logarithmic bool // the length of a bar is the logarithm of its figure
}

// A bar shows a figure, or two that add up, each as "package benchmark unit".
type bar struct {
	label   string
	figures []string
	ours    bool // a result of leafsql, not of a competitor
}

var plots = []plot{
	{"statement", "One statement: time in the program, with a driver below that does nothing", []panel{
		{"grey: without leafsql; green: what leafsql adds", "ns", []bar{
			overheadBar("INSERT of one row, arguments", "insert_with_arguments"),
			overheadBar("… prepared", "insert_with_arguments_prepared"),
			overheadBar("… values in the text", "insert_text"),
			overheadBar("UPDATE", "update"),
			overheadBar("INSERT into another table", "insert_elsewhere"),
		}, false},
	}},
	{"rows", "Rows a second into a MariaDB on the same machine", []panel{
		rowsPanel("one row a statement", "rows=1"),
		rowsPanel("100 rows a statement", "rows=100"),
	}},
	{"ids", "The next id, from memory", []panel{
		{"one goroutine", "ns", []bar{
			{"an atomic add alone", []string{"idgen/segment BenchmarkNext/bare_atomic_add/serial ns/op"}, false},
			{"segment", []string{"idgen/segment BenchmarkNext/segment/serial ns/op"}, true},
			{"snowflake", []string{"idgen/snowflake BenchmarkBurst/serial ns/op"}, true},
		}, false},
		{"two cores at once", "ns", []bar{
			{"an atomic add alone", []string{"idgen/segment BenchmarkNext/bare_atomic_add/parallel ns/op"}, false},
			{"segment", []string{"idgen/segment BenchmarkNext/segment/parallel ns/op"}, true},
			{"snowflake", []string{"idgen/snowflake BenchmarkBurst/parallel ns/op"}, true},
		}, false},
	}},
	{"worker-ids", "How long a process takes to get a worker id", []panel{
		{"one process, median", "ms", []bar{
			workerBar("Redis 7.0", "redis", "Acquire"),
			workerBar("MariaDB 10.11", "mysql", "mariadb/Acquire"),
			workerBar("etcd 3.4", "etcd", "Acquire"),
			workerBar("MySQL 9.7", "mysql", "mysql/Acquire"),
			workerBar("ZooKeeper 3.9", "zookeeper", "Acquire"),
			{"Nacos 2.3.2", []string{"nacos BenchmarkAcquire/2.3.2 ns/op"}, true},
			{"Nacos 3.1.0", []string{"nacos BenchmarkAcquire/3.1.0 ns/op"}, true},
		}, false},
		{"64 processes at once, the last of them", "ms", []bar{
			concurrentBar("Redis 7.0", "redis", "SixtyFourAtOnce"),
			concurrentBar("MariaDB 10.11", "mysql", "mariadb/SixtyFourAtOnce"),
			concurrentBar("etcd 3.4", "etcd", "SixtyFourAtOnce"),
			concurrentBar("MySQL 9.7", "mysql", "mysql/SixtyFourAtOnce"),
			concurrentBar("ZooKeeper 3.9", "zookeeper", "SixtyFourAtOnce"),
			{"Nacos 2.3.2", []string{"nacos BenchmarkSixtyFourProcesses/2.3.2 max-ms"}, true},
			{"Nacos 3.1.0", []string{"nacos BenchmarkSixtyFourProcesses/3.1.0 max-ms"}, true},
		}, false},
	}},
}

func overheadBar(label, name string) bar {
	return bar{label, []string{"driver BenchmarkOverhead/" + name + " bare-ns", "driver BenchmarkOverhead/" + name + " added-ns"}, true}
}

func rowsPanel(title, name string) panel {
	of := func(label, who string, ours bool) bar {
		return bar{label, []string{"driver/servertest BenchmarkServer/" + name + " " + who + "-rows/s"}, ours}
	}
	return panel{title, "", []bar{of("AUTO_INCREMENT", "auto", false), of("keys of the program's own", "explicit", false), of("leafsql", "leaf", true)}, false}
}

func workerBar(label, source, name string) bar {
	return bar{label, []string{"idgen/worker/" + source + " BenchmarkWorker/" + name + " p50-ms"}, true}
}

func concurrentBar(label, source, name string) bar {
	return bar{label, []string{"idgen/worker/" + source + " BenchmarkWorker/" + name + " max-ms"}, true}
}
