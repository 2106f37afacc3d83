import java.sql.*;

/** Writes orders to both shards in turn, and prints how many seconds that took. */
public class Orders {
	public static void main(String[] args) throws SQLException {
		String[] shards = System.getenv("SHARDS").split(",");
		PreparedStatement[] inserts = new PreparedStatement[shards.length];
		for (int i = 0; i < shards.length; i++) {
			Connection db = DriverManager.getConnection("jdbc:mariadb://" + System.getenv("DB_HOST") + ":" + System.getenv("DB_PORT") + "/" + shards[i],
					System.getenv("DB_USER"), System.getenv("DB_PASSWORD"));
			inserts[i] = db.prepareStatement("INSERT INTO orders (program, total) VALUES ('Java', ?)", Statement.RETURN_GENERATED_KEYS);
		}
		long start = System.nanoTime();
		for (int i = 0; i < Integer.parseInt(System.getenv("ROWS")); i++) {
			PreparedStatement insert = inserts[i % 2];
			insert.setInt(1, i);
			insert.executeUpdate();
			try (ResultSet keys = insert.getGeneratedKeys()) {
				if (!keys.next()) {
					throw new SQLException("an order without an id");
				}
			}
		}
		System.out.println((System.nanoTime() - start) / 1e9);
	}
}
