import java.sql.DriverManager;
import java.sql.Statement;

/** Inserts a row through the connection of a URL, and prints its id. */
class Snippet {
    public static void main(String[] args) throws Exception {
        try (var db = DriverManager.getConnection(args[0], "app", "secret"); var statement = db.createStatement()) {
            statement.executeUpdate(args[1], Statement.RETURN_GENERATED_KEYS);
            var keys = statement.getGeneratedKeys();
            keys.next();
            System.out.println(keys.getLong(1));
        }
    }
}
