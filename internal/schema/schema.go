// Package schema returns the SQL that creates leafsql's tables.
//
//	db.Exec(schema.LeafAlloc(quote.Table("ids.leaf_alloc")))
//
// It executes no statement.
package schema

// LeafAlloc returns the SQL that creates leaf_alloc, as Leaf defines it, if it does not exist.
//
// The collation is utf8mb4_general_ci, which MariaDB and MySQL have. It ignores case, as Leaf's own table does on
// most servers. Two tags that are equal in this collation share a row, which is safe. One tag with two rows would
// not be safe.
func LeafAlloc(quoted string) string {
	return table(quoted, `
  biz_tag varchar(128) NOT NULL DEFAULT '',
  max_id bigint NOT NULL DEFAULT 1,
  step int NOT NULL,
  description varchar(256) DEFAULT NULL,
  update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (biz_tag)
`)
}

// Sequences returns the SQL that creates t_sequence, a table with one row for each sequence, if it
// does not exist.
func Sequences(quoted string) string {
	return table(quoted, `
  name varchar(128) NOT NULL,
  current_value bigint NOT NULL DEFAULT 0,
  increment int NOT NULL DEFAULT 1000,
  min_value bigint NOT NULL DEFAULT 1,
  max_value bigint NOT NULL DEFAULT 9223372036854775806,
  cycle tinyint NOT NULL DEFAULT 0,
  PRIMARY KEY (name)
`)
}

func table(quoted, columns string) string {
	return "CREATE TABLE IF NOT EXISTS " + quoted + " (" + columns + ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci"
}

// LeafWorker returns the SQL that creates the table of worker ids, if it does not exist. Its
// text columns are compared byte by byte.
func LeafWorker(quoted string) string {
	return "CREATE TABLE IF NOT EXISTS " + quoted + ` (
  worker_id int NOT NULL,
  nonce varchar(64) NOT NULL,
  hw bigint unsigned NOT NULL,
  free tinyint NOT NULL,
  owner text NOT NULL,
  registry varchar(64) NOT NULL,
  update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (worker_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin`
}
