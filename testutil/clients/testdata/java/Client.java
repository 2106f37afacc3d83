import java.math.BigDecimal;
import java.math.BigInteger;
import java.sql.*;
import java.util.*;

/** What JDBC drivers see: Client mariadb|mysql [parameters of the URL] */
public class Client {
	static Connection db;

	static void say(String label, Object... what) {
		StringBuilder line = new StringBuilder(label).append(":");
		for (Object w : what) {
			line.append(' ').append(w instanceof int[] a ? Arrays.toString(a) : w instanceof byte[] b ? HexFormat.of().formatHex(b) : w);
		}
		System.out.println(line);
	}

	interface Step {
		void run() throws SQLException;
	}

	static void step(String label, Step s) {
		try {
			s.run();
		} catch (BatchUpdateException e) {
			say(label, "batch", e.getUpdateCounts(), e.getErrorCode(), e.getSQLState(), message(e));
		} catch (SQLException e) {
			say(label, e.getClass().getName(), e.getErrorCode(), e.getSQLState(), message(e));
		}
	}

	// The text of an error without the connection's number, which the MariaDB driver puts in front.
	static String message(SQLException e) {
		return e.getMessage().replaceFirst("^\\(conn=\\d+\\) ", "");
	}

	static String keys(Statement s) throws SQLException {
		StringJoiner keys = new StringJoiner(",", "[", "]");
		try (ResultSet r = s.getGeneratedKeys()) {
			while (r.next()) {
				keys.add(r.getString(1));
			}
		}
		return keys.toString();
	}

	static String warnings(Statement s) throws SQLException {
		StringJoiner all = new StringJoiner(",", "[", "]");
		for (SQLWarning w = s.getWarnings(); w != null; w = w.getNextWarning()) {
			all.add(w.getErrorCode() + " " + w.getMessage());
		}
		return all.toString();
	}

	static String rows(ResultSet r) throws SQLException {
		StringJoiner all = new StringJoiner(" ");
		ResultSetMetaData meta = r.getMetaData();
		for (int i = 1; i <= meta.getColumnCount(); i++) {
			all.add(meta.getColumnLabel(i) + "/" + meta.getColumnTypeName(i) + "/" + meta.getPrecision(i));
		}
		while (r.next()) {
			StringJoiner row = new StringJoiner(",", "(", ")");
			for (int i = 1; i <= meta.getColumnCount(); i++) {
				row.add(r.getString(i));
			}
			all.add(row.toString());
		}
		return all.toString();
	}

	static void text(String label, String sql) {
		step(label, () -> {
			try (Statement s = db.createStatement()) {
				boolean isRows = s.execute(sql, Statement.RETURN_GENERATED_KEYS);
				if (isRows) {
					say(label, rows(s.getResultSet()));
				} else {
					say(label, s.getUpdateCount(), keys(s), warnings(s));
				}
			}
		});
	}

	static void batch(String label, String sql, Object[][] all) {
		step(label, () -> {
			try (PreparedStatement s = db.prepareStatement(sql, Statement.RETURN_GENERATED_KEYS)) {
				for (Object[] row : all) {
					for (int i = 0; i < row.length; i++) {
						s.setObject(i + 1, row[i]);
					}
					s.addBatch();
				}
				int[] counts = s.executeBatch();
				say(label, counts, keys(s));
			}
		});
	}

	static void prepared(String label, String sql, Object[]... all) {
		step(label, () -> {
			try (PreparedStatement s = db.prepareStatement(sql, Statement.RETURN_GENERATED_KEYS)) {
				for (Object[] row : all) {
					for (int i = 0; i < row.length; i++) {
						s.setObject(i + 1, row[i]);
					}
					if (s.execute()) {
						say(label, rows(s.getResultSet()));
					} else {
						say(label, s.getUpdateCount(), keys(s), warnings(s));
					}
				}
			}
		});
	}

	public static void main(String[] args) throws Exception {
		Map<String, String> env = System.getenv();
		db = DriverManager.getConnection("jdbc:" + args[0] + "://" + env.get("DB_HOST") + ":" + env.get("DB_PORT") + "/" + env.get("DB_NAME")
				+ "?allowPublicKeyRetrieval=true&" + (args[0].equals("mysql") ? "sslMode=DISABLED&allowLoadLocalInfile=true&" : "sslMode=disable&")
				+ (args.length > 1 ? args[1] : ""), env.get("DB_USER"), env.get("DB_PASSWORD"));
		boolean severalAllowed = args.length > 1 && args[1].contains("allowMultiQueries");

		text("text", "INSERT INTO orders (customer) VALUES ('ann')");
		text("last", "SELECT LAST_INSERT_ID(), ROW_COUNT()");
		text("three", "INSERT INTO orders (customer) VALUES ('a\\'\\\\ ?'), ('b -- ;'), ('ü')");
		text("null and zero", "INSERT INTO orders (id, customer) VALUES (NULL, 'n'), (0, 'z')");
		text("brought key", "INSERT INTO orders (id, customer) VALUES (1000, 'k')");
		text("after", "INSERT INTO orders (customer) VALUES ('after')");
		String upsert = "INSERT INTO items (sku, stock) VALUES ('tea', %d) ON DUPLICATE KEY UPDATE stock = VALUES(stock)";
		text("upsert, new", upsert.formatted(1));
		text("upsert, changed", upsert.formatted(2));
		text("upsert, same", upsert.formatted(2));
		text("ignore", "INSERT IGNORE INTO ignored (sku) VALUES ('a')");
		text("ignore, known", "INSERT IGNORE INTO ignored (sku) VALUES ('a')");
		text("replace", "REPLACE INTO ignored (sku, stock) VALUES ('a', 9)");
		text("select", "INSERT INTO copies (customer, total) SELECT customer, total FROM orders ORDER BY id");
		text("copies", "SELECT * FROM copies ORDER BY id");
		text("duplicate", "INSERT INTO items (sku) VALUES ('tea')");
		text("syntax", "INSERT INTO orders (customer) VALUES (");
		text("no table", "INSERT INTO nowhere (a) VALUES (1)");
		text("null", "INSERT INTO failing (a) VALUES (NULL)");

		Object[] row = {-7, new BigInteger("18446744073709551615"), 1.5e-3, new BigDecimal("-12345.678900"), "ü漢😀", new byte[] {0, 1, (byte) 0xfe, '\\', '\''},
				Timestamp.valueOf("2026-12-31 01:02:03.456789"), java.sql.Date.valueOf("1999-01-02")};
		String typed = "INSERT INTO typed (i, u, f, d, s, b, t, y) VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
		Object[][] rows = new Object[10][];
		for (int i = 0; i < rows.length; i++) {
			rows[i] = row.clone();
			if (i < 8) {
				rows[i][i] = null;
			}
		}
		rows[9][0] = "8";
		prepared("typed", typed, rows);
		prepared("typed rows", "SELECT * FROM typed WHERE id > ? ORDER BY id", new Object[] {0}, new Object[] {5L});
		prepared("key", "INSERT INTO keyed (id, a) VALUES (?, ?)", new Object[] {null, 1}, new Object[] {500, 2}, new Object[] {0, 3}, new Object[] {"700", 4},
				new Object[] {null, 5});
		prepared("prepared select", "INSERT INTO none (customer) SELECT customer FROM orders WHERE id < ? ORDER BY id", new Object[] {3});
		prepared("prepared, error", "INSERT INTO items (sku) VALUES (?)", new Object[] {"cup"}, new Object[] {"tea"});
		prepared("prepared, no column", "INSERT INTO failing (nothing) VALUES (?)", new Object[] {"cup"});

		Object[][] many = new Object[300][];
		for (int i = 0; i < many.length; i++) {
			many[i] = new Object[] {i, "row " + i};
		}
		batch("batch", "INSERT INTO batches (a, b) VALUES (?, ?)", many);
		text("batches", "SELECT COUNT(*), MIN(id), MAX(id), SUM(id = a + 1) FROM batches");
		batch("batch with keys", "INSERT INTO keyed (id, a) VALUES (?, ?)", new Object[][] {{9000, 1}, {null, 2}, {null, 3}});
		batch("batch with an error", "INSERT INTO failing (a) VALUES (?)", new Object[][] {{"a"}, {"a"}, {"b"}});
		batch("batch of upserts", "INSERT INTO items (sku, stock) VALUES (?, ?) ON DUPLICATE KEY UPDATE stock = VALUES(stock)",
				new Object[][] {{"new", 7}, {"tea", 8}, {"cup", 9}});
		step("batch of texts", () -> {
			try (Statement s = db.createStatement()) {
				s.addBatch("INSERT INTO parts (a) VALUES ('1')");
				s.addBatch("UPDATE parts SET a = 'x'");
				s.addBatch("INSERT INTO parts (a) VALUES ('2'), ('3')");
				say("batch of texts", s.executeBatch());
			}
		});

		db.setAutoCommit(false);
		text("in transaction", "INSERT INTO held (a) VALUES (1), (2)");
		db.rollback();
		text("rolled back", "SELECT COUNT(*) FROM held");
		text("select in transaction", "INSERT INTO nested2 (a) SELECT 1 UNION SELECT 2");
		db.rollback();
		text("rolled back", "SELECT COUNT(*) FROM held");
		text("in transaction", "INSERT INTO held (a) VALUES (3)");
		Savepoint p = db.setSavepoint("p");
		text("in transaction", "INSERT INTO held (a) VALUES (4)");
		db.rollback(p);
		db.commit();
		db.setAutoCommit(true);
		text("committed", "SELECT a FROM held");

		byte[] body = new byte[(16 << 20) + 77];
		new Random(1).nextBytes(body);
		step("file", () -> {
			try (PreparedStatement s = db.prepareStatement("INSERT INTO files (name, body) VALUES (?, ?)", Statement.RETURN_GENERATED_KEYS)) {
				s.setString(1, "f");
				s.setBinaryStream(2, new java.io.ByteArrayInputStream(body), body.length);
				say("file", s.executeUpdate(), keys(s));
			}
			try (Statement s = db.createStatement(); ResultSet r = s.executeQuery("SELECT body FROM files")) {
				r.next();
				say("file back", Arrays.equals(body, r.getBytes(1)));
			}
		});
		step("cursor", () -> {
			try (PreparedStatement s = db.prepareStatement("SELECT id, a FROM batches WHERE id < ? ORDER BY id")) {
				s.setInt(1, 1000);
				s.setFetchSize(7);
				try (ResultSet r = s.executeQuery()) {
					long sum = 0;
					for (int n = 0; r.next(); n++) {
						sum += r.getLong(1) * r.getLong(2);
					}
					say("cursor", sum);
				}
			}
		});
		if (severalAllowed) {
			step("several", () -> {
				try (Statement s = db.createStatement()) {
					boolean isRows = s.execute("INSERT INTO parts (a) VALUES ('4'), ('5'); SELECT a FROM parts ORDER BY id; INSERT INTO nested (a) SELECT 1 UNION SELECT 2; "
							+ "INSERT INTO parts (a) VALUES ('6')", Statement.RETURN_GENERATED_KEYS);
					for (;; isRows = s.getMoreResults()) {
						if (isRows) {
							say("several", rows(s.getResultSet()));
						} else if (s.getUpdateCount() == -1) {
							break;
						} else {
							say("several", s.getUpdateCount(), keys(s));
						}
					}
				}
			});
		} else {
			text("not several", "INSERT INTO failing (a) SELECT a FROM parts; DROP TABLE held -- '");
		}
		java.nio.file.Path words = java.nio.file.Files.createTempFile("words", "");
		java.nio.file.Files.writeString(words, "one\t1\ntwo\t2\n");
		text("load", "LOAD DATA LOCAL INFILE '" + words + "' INTO TABLE words (word, n)");
		java.nio.file.Files.delete(words);
		text("words", "SELECT * FROM words ORDER BY id");
		say("valid", db.isValid(5));
		db.setCatalog(env.get("DB_NAME"));
		text("after setCatalog", "INSERT INTO orders (customer) VALUES ('end')");
		text("orders", "SELECT * FROM orders ORDER BY id");
		db.close();
		say("end");
	}
}
