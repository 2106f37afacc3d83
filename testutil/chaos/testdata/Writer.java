import java.sql.*;
import java.util.stream.*;

/** A writer in Java; programs_test.go describes what writers do. */
public class Writer {
	static final int ROWS = 20;
	static final int writer = number("WRITER");
	static long next = Long.parseLong(System.getenv("NEXT"));

	static int number(String name) {
		return Integer.parseInt(System.getenv(name));
	}

	/** Reserves the numbers of the next rows: those of a failed statement are not reused. */
	static long take(int rows) {
		next += rows;
		return next - rows;
	}

	static String text(Connection db, int rows) throws SQLException {
		long first = take(rows);
		try (Statement statement = db.createStatement()) {
			statement.executeUpdate("INSERT INTO orders (writer, n) VALUES " + LongStream.range(first, first + rows)
					.mapToObj(n -> "(" + writer + ", " + n + ")").collect(Collectors.joining(", ")), Statement.RETURN_GENERATED_KEYS);
			return said(statement, rows, first);
		}
	}

	static String prepared(PreparedStatement insert, int rows) throws SQLException {
		long first = take(rows);
		for (int i = 0; i < rows; i++) {
			insert.setInt(2 * i + 1, writer);
			insert.setLong(2 * i + 2, first + i);
		}
		insert.executeUpdate();
		return said(insert, rows, first);
	}

	static String said(Statement statement, int rows, long first) throws SQLException {
		try (ResultSet keys = statement.getGeneratedKeys()) {
			keys.next();
			return rows + " " + first + " " + keys.getLong(1) + "\n";
		}
	}

	static PreparedStatement prepare(Connection db, int rows) throws SQLException {
		return db.prepareStatement("INSERT INTO orders (writer, n) VALUES (?, ?)" + ", (?, ?)".repeat(rows - 1), Statement.RETURN_GENERATED_KEYS);
	}

	public static void main(String[] args) throws InterruptedException {
		String[] ports = System.getenv("DB_PORTS").split(",");
		int left = number("LEFT");
		for (int turn = writer, i = 0; left > 0; turn++) {
			try (Connection db = DriverManager.getConnection(args[0].replace("HOST:PORT/NAME", System.getenv("DB_HOST") + ":"
							+ ports[turn % ports.length] + "/" + System.getenv("DB_NAME")), System.getenv("DB_USER"), System.getenv("DB_PASSWORD"));
					PreparedStatement one = prepare(db, 1);
					PreparedStatement several = prepare(db, ROWS)) {
				for (; left > 0; i++) {
					int rows = ROWS;
					String acknowledged;
					switch (i % 8) {
					case 0:
						acknowledged = text(db, rows = 1);
						break;
					case 1:
						acknowledged = prepared(one, rows = 1);
						break;
					case 2:
						db.setAutoCommit(false);
						acknowledged = text(db, ROWS) + prepared(one, 1);
						db.commit();
						db.setAutoCommit(true);
						rows = ROWS + 1;
						break;
					case 3: case 5: case 7:
						acknowledged = prepared(several, ROWS);
						break;
					default:
						acknowledged = text(db, ROWS);
					}
					System.out.print(acknowledged);
					System.out.flush();
					left -= rows;
				}
			} catch (SQLException e) {
				System.out.println("! " + e.getErrorCode() + " " + e.getMessage().replace('\n', ' '));
				Thread.sleep(50);
			}
		}
	}
}
