package servertest

// seeded inserts a row with a key of the case.
const seeded = "INSERT INTO t (id, k, n) VALUES (7, 'old', -1)"

var matrixCases = []matrixCase{
	{name: "one row", steps: []step{
		ex("INSERT INTO t (k, n) VALUES (?, ?)", "a", 1),
		ex("INSERT t (k, n) VALUE (?, ?);", "b", 2),
		ex("insert into t(k) values(?)", "c"),
	}},
	{name: "many rows", steps: []step{
		ex("INSERT INTO t (k, n) VALUES (?, ?), (?, ?), (?, ?)", "a", 1, "b", 2, "c", 3),
		ex("INSERT INTO t (k) VALUES (?),(?)", "d", "e"),
	}},
	{name: "expressions", steps: []step{
		ex("INSERT INTO t (k, n) VALUES (CONCAT('a', ?), (SELECT 1 + ?)), (UPPER(CONCAT(?, ')')), -n + 2)", "x", 1, "y"),
	}},
	{name: "set", steps: []step{
		ex("INSERT INTO t SET k = ?, n = ?", "a", 1),
		ex("INSERT INTO t SET t.k := ?", "b"),
		ex("INSERT INTO t SET id = NULL, k = ?", "c"),
		ex("INSERT INTO t SET id = ?, k = ?", nil, "d"),
	}},
	{name: "no values", steps: []step{
		ex("INSERT INTO t VALUES ()"),
		ex("INSERT INTO t () VALUES ()"),
		ex("INSERT INTO t () VALUES (), ()"),
	}},
	{name: "key listed and empty", steps: []step{
		ex("INSERT INTO t (id, k) VALUES (NULL, ?)", "a"),
		ex("INSERT INTO t (k, id) VALUES (?, DEFAULT)", "b"),
		ex("INSERT INTO t (id, k) VALUES (0, ?), ('0', ?), (+0, ?)", "c", "d", "e"),
		ex("INSERT INTO t (`ID`, k) VALUES (NULL, ?), (DEFAULT, ?)", "f", "g"),
		ex("INSERT INTO t (id, k) VALUES ((0), ?), (-0, ?), ('00', ?)", "h", "i", "j"),
	}},
	{name: "key as argument", steps: []step{
		ex("INSERT INTO t (id, k) VALUES (?, ?)", nil, "a"),
		ex("INSERT INTO t (id, k) VALUES (?, ?)", 0, "b"),
		ex("INSERT INTO t (id, k) VALUES (?, ?)", "0", "c"),
		ex("INSERT INTO t (id, k) VALUES (?, ?), (?, ?)", nil, "d", 0, "e"),
	}},
	{name: "explicit keys", steps: []step{
		ex("INSERT INTO t (id, k, n) VALUES (?, ?, -1)", 201, "a"),
		{sql: "INSERT INTO t (id, k, n) VALUES (202, ?, -1), (203, ?, -1)", args: []any{"b", "c"}, plainID: "0"},
		{sql: "INSERT INTO t (id, k, n) VALUES (-5, ?, -1)", args: []any{"d"}, plainID: "0"},
		ex("INSERT INTO t (id, k) VALUES (201, ?)", "again"),
	}},
	{name: "mixed keys", steps: []step{
		ex("INSERT INTO t (id, k, n) VALUES (NULL, ?, 1), (500, ?, -1), (NULL, ?, 1)", "a", "b", "c"),
		ex("INSERT INTO t (id, k, n) VALUES (?, ?, 1), (?, ?, -1), (?, ?, 1)", nil, "d", 400, "e", 0, "f"),
		ex("INSERT INTO t (k, n, id) VALUES (?, 1, DEFAULT), (?, -1, ?)", "g", "h", 300),
	}},
	{name: "no column list", steps: []step{
		ex("INSERT INTO t VALUES (NULL, ?, ?, NULL)", "a", 1),
		ex("INSERT INTO t VALUES (0, ?, ?, NULL), (DEFAULT, ?, ?, NULL)", "b", 1, "c", 2),
		ex("INSERT INTO t VALUES (?, ?, ?, NULL)", nil, "d", 1),
		ex("INSERT INTO t () VALUES (NULL, ?, 1, NULL)", "e"),
		ex("INSERT INTO t VALUES (NULL, ?)", "too few"),
	}},
	{name: "names and comments", steps: []step{
		ex("INSERT /* a ; ' */ INTO `t` -- (\n (`k`, `n`) # )\n VALUES (?, /* ? */ 1) /* end */", "a"),
		ex("INSERT\tINTO\nt\r(k)VALUES(?)", "b"),
		ex("INSERT INTO t (t.k, t.n) VALUES (?, 29--1)", "c"),
		ex("INSERT INTO t (k) VALUES ('d''?' ' )') -- ;"),
		ex("INSERT INTO t (k) VALUES (?);;", "e"),
	}},
	{name: "comments after the semicolon", seed: seeded, steps: []step{
		ex("INSERT INTO t (k) VALUES (?); -- x", "a"),
		ex("INSERT INTO t (k) VALUES (?), (?);# ; '", "b", "c"),
		ex("INSERT INTO t (k) VALUES (?); /* traceparent='00-ab' */ ;", "d"),
		ex("INSERT INTO t (k) VALUES (?);\n-- x\n# y\n/* z\n */ /*!99999 x */", "e"),
		{sql: "INSERT INTO t (k, n) VALUES (?, 1) ON DUPLICATE KEY UPDATE n = 2; -- x", args: []any{"old"}, sqlID: "row old"},
		{sql: "INSERT INTO t (id, k, n) VALUES (?, ?, -1) ON DUPLICATE KEY UPDATE n = -2; -- x", args: []any{7, "f"}, sqlID: "row old"},
		ex("INSERT INTO t (k) SELECT ?; /* x */", "g"),
		ex("INSERT INTO t (k) SELECT CONCAT(k, ?) FROM t WHERE k = 'a'; -- x", "h"),
		ex("INSERT INTO t (k) VALUES (?);; -- x", "i"),
		ex("INSERT INTO t (k) SELECT CONCAT(k, ?) FROM t WHERE k = 'a'; /* x */ ; -- x", "j"),
		ex("INSERT INTO t (k) VALUES (?); /*!40101 DO 1 */", "k"),
	}},
	{name: "ignore", seed: seeded, steps: []step{
		ex("INSERT IGNORE INTO t (k) VALUES (?)", "a"),
		{sql: "INSERT IGNORE INTO t (k) VALUES (?)", args: []any{"old"}, id: "0", sqlID: "no row"},
		ex("INSERT IGNORE INTO t (k) VALUES (?), (?)", "b", "c"),
		{sql: "INSERT IGNORE INTO t (k) VALUES (?), (?)", args: []any{"old", "d"}, id: "0", sqlID: "no row"},
	}},
	{name: "upsert", seed: seeded, steps: []step{
		ex("INSERT INTO t (k, n) VALUES (?, ?) ON DUPLICATE KEY UPDATE n = n + 1", "a", 1),
		// SQL's LAST_INSERT_ID() does not follow an update under AUTO_INCREMENT.
		{sql: "INSERT INTO t (k, n) VALUES (?, ?) ON DUPLICATE KEY UPDATE n = VALUES(n)", args: []any{"old", -2}, sqlID: "row old"},
		// AUTO_INCREMENT returns 0 for a row that does not change.
		{sql: "INSERT INTO t (k, n) VALUES (?, ?) ON DUPLICATE KEY UPDATE n = VALUES(n)", args: []any{"old", -2}, id: "row old", sqlID: "row old"},
		ex("INSERT INTO t (k) VALUES (?) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), n = -3", "old"),
		ex("INSERT INTO t (k) VALUES (?) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)", "b"),
	}},
	{name: "upsert of several rows", seed: seeded, steps: []step{
		ex("INSERT INTO t (k, n) VALUES (?, 1), (?, 1), (?, 1) ON DUPLICATE KEY UPDATE n = n + 1", "a", "b", "c"),
		{sql: "INSERT INTO t (k, n) VALUES (?, 1), (?, 1) ON DUPLICATE KEY UPDATE n = n - 1", args: []any{"old", "d"}, id: "0", sqlID: "row old"},
		{sql: "INSERT INTO t (k, n) VALUES (?, 1), (?, 1) ON DUPLICATE KEY UPDATE n = n - 1", args: []any{"e", "old"}, id: "0", sqlID: "row old"},
	}},
	{name: "upsert of new rows beside rows named by their keys", seed: seeded, steps: []step{
		ex("INSERT INTO t (k, n, id) VALUES (?, 1, DEFAULT), (?, -2, 7) ON DUPLICATE KEY UPDATE n = VALUES(n)", "a", "old"),
		ex("INSERT INTO t (k, n, id) VALUES (?, -3, 7), (?, 1, DEFAULT) ON DUPLICATE KEY UPDATE n = VALUES(n)", "old", "b"),
		ex("INSERT INTO t (id, k, n) VALUES (?, ?, 1), (?, ?, -4), (?, ?, 1) ON DUPLICATE KEY UPDATE n = VALUES(n)", nil, "c", 7, "old", nil, "d"),
		ex("INSERT INTO t (k, n, id) VALUES (?, 1, DEFAULT), (?, 1, DEFAULT), (?, -2, 7) ON DUPLICATE KEY UPDATE id = id", "e", "f", "old"),
	}},
	{name: "replace", seed: seeded, steps: []step{
		ex("REPLACE INTO t (k, n) VALUES (?, 1)", "a"),
		ex("REPLACE INTO t (k, n) VALUES (?, 2), (?, 2)", "a", "old"),
		ex("REPLACE t SET k = ?", "b"),
	}},
	{name: "last_insert_id in the next statement", steps: []step{
		ex("INSERT INTO t (k) VALUES (?)", "parent"),
		ex("INSERT INTO t (k, ref) VALUES (?, LAST_INSERT_ID())", "child"),
		ex("INSERT INTO t (k) VALUES (?), (?)", "p2", "p3"),
		ex("INSERT INTO t (k, ref) VALUES (?, LAST_INSERT_ID()), (?, LAST_INSERT_ID())", "c1", "c2"),
	}},
	{name: "errors", seed: seeded, steps: []step{
		ex("INSERT INTO t (k) VALUES (?)", "old"),
		ex("INSERT INTO t (nosuch) VALUES (?)", "a"),
		ex("INSERT INTO t (k, n) VALUES (?)", "a"),
		ex("INSERT INTO t (k, n) VALUES (?, 'x')", "a"),
		ex("INSERT INTO nosuch (k) VALUES (?)", "a"),
		ex("INSERT INTO t (k) VALUES (?", "a"),
		ex("INSERT INTO t (k, k) VALUES (?, 1)", "a"),
	}},
	{name: "not an insert", seed: seeded, steps: []step{
		{sql: "UPDATE t SET n = n - ? WHERE k = REPLACE('olx', 'x', 'd')", args: []any{1}},
		{sql: "DELETE FROM t WHERE k = ?", args: []any{"old"}},
	}},
}
