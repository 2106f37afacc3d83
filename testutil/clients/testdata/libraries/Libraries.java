import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.*;
import java.util.stream.IntStream;
import org.apache.ibatis.annotations.Insert;
import org.apache.ibatis.annotations.Options;
import org.apache.ibatis.annotations.Param;
import org.apache.ibatis.annotations.SelectKey;
import org.apache.ibatis.mapping.Environment;
import org.apache.ibatis.session.Configuration;
import org.apache.ibatis.session.ExecutorType;
import org.apache.ibatis.session.SqlSession;
import org.apache.ibatis.session.SqlSessionFactory;
import org.apache.ibatis.session.SqlSessionFactoryBuilder;
import org.apache.ibatis.transaction.jdbc.JdbcTransactionFactory;
import org.flywaydb.core.Flyway;
import org.jooq.DSLContext;
import org.jooq.Identity;
import org.jooq.Record;
import org.jooq.SQLDialect;
import org.jooq.TableField;
import org.jooq.UniqueKey;
import org.jooq.exception.DataAccessException;
import org.jooq.impl.DSL;
import org.jooq.impl.Internal;
import org.jooq.impl.SQLDataType;
import org.jooq.impl.TableImpl;
import org.springframework.dao.DuplicateKeyException;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.core.simple.SimpleJdbcInsert;
import org.springframework.jdbc.support.GeneratedKeyHolder;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** What programs on Spring's JdbcTemplate, MyBatis, jOOQ and Flyway see, on a pool of HikariCP: Libraries mariadb|mysql [parameters of the URL] */
public class Libraries {
	static void say(String label, Object... what) {
		System.out.println(label + ": " + Arrays.deepToString(what));
	}

	public static void main(String[] args) throws Exception {
		System.setProperty("org.jooq.no-logo", "true");
		System.setProperty("org.jooq.no-tips", "true");
		Map<String, String> env = System.getenv();
		try (HikariDataSource pool = new HikariDataSource()) {
			pool.setJdbcUrl("jdbc:" + args[0] + "://" + env.get("DB_HOST") + ":" + env.get("DB_PORT") + "/" + env.get("DB_NAME") + "?allowPublicKeyRetrieval=true&" + args[1]);
			pool.setUsername(env.get("DB_USER"));
			pool.setPassword(env.get("DB_PASSWORD"));
			pool.setMaximumPoolSize(1);
			flyway(pool);
			spring(pool);
			myBatis(pool);
			jooq(pool);
		}
		say("end");
	}

	static void flyway(HikariDataSource pool) {
		for (int i = 0; i < 2; i++) {
			say("migrations", Flyway.configure().dataSource(pool).locations("filesystem:migrations").baselineOnMigrate(true).baselineVersion("0").load().migrate().migrationsExecuted);
		}
		say("flown", new JdbcTemplate(pool).queryForList("SELECT * FROM flown ORDER BY id"));
	}

	static void spring(HikariDataSource pool) {
		JdbcTemplate db = new JdbcTemplate(pool);
		GeneratedKeyHolder holder = new GeneratedKeyHolder();
		db.update(c -> {
			PreparedStatement s = c.prepareStatement("INSERT INTO orders (customer) VALUES (?)", Statement.RETURN_GENERATED_KEYS);
			s.setString(1, "it's \\ ü");
			return s;
		}, holder);
		say("key", holder.getKey());
		SimpleJdbcInsert insert = new SimpleJdbcInsert(pool).withTableName("orders").usingColumns("customer", "total").usingGeneratedKeyColumns("id");
		say("simple", insert.executeAndReturnKey(Map.of("customer", "simple", "total", 2)));
		say("batch", db.batchUpdate("INSERT INTO batches (a, b) VALUES (?, ?)", IntStream.range(0, 100).mapToObj(i -> new Object[] {i, "row " + i}).toList()).length);
		say("batches", db.queryForList("SELECT COUNT(*), MIN(id), MAX(id), SUM(id = a + 1) FROM batches"));
		db.update("INSERT INTO items (sku) VALUES ('tea')");
		try {
			db.update("INSERT INTO items (sku) VALUES ('tea')");
		} catch (DuplicateKeyException e) {
			say("duplicate", ((SQLException) e.getCause()).getErrorCode());
		}
		TransactionTemplate transaction = new TransactionTemplate(new JdbcTransactionManager(pool));
		transaction.executeWithoutResult(status -> {
			say("rolled back", insert.executeAndReturnKey(Map.of("customer", "rolled back", "total", 1)));
			status.setRollbackOnly();
		});
		say("select", db.update("INSERT INTO copies (customer, total) SELECT customer, total FROM orders ORDER BY id"));
	}

	public static class Item {
		public Integer id;
		public String sku;
		public int stock;

		public Item(String sku) {
			this.sku = sku;
		}
	}

	interface Mapper {
		@Insert("INSERT INTO ignored (sku, stock) VALUES (#{sku}, #{stock})")
		@Options(useGeneratedKeys = true, keyProperty = "id")
		int add(Item item);

		@Insert("<script>INSERT INTO ignored (sku) VALUES <foreach collection='items' item='i' separator=','>(#{i.sku})</foreach></script>")
		@Options(useGeneratedKeys = true, keyProperty = "items.id")
		int addAll(@Param("items") List<Item> items);

		@Insert("INSERT INTO held (a) VALUES (#{a})")
		@SelectKey(statement = "SELECT LAST_INSERT_ID()", keyProperty = "id", before = false, resultType = long.class)
		int hold(Map<String, Object> row);
	}

	static void myBatis(HikariDataSource pool) {
		var configuration = new Configuration(new Environment("test", new JdbcTransactionFactory(), pool));
		configuration.addMapper(Mapper.class);
		SqlSessionFactory factory = new SqlSessionFactoryBuilder().build(configuration);
		List<Item> items = IntStream.range(0, 5).mapToObj(i -> new Item("item " + i)).toList();
		try (SqlSession session = factory.openSession()) {
			Mapper mapper = session.getMapper(Mapper.class);
			Item one = new Item("one");
			say("one", mapper.add(one), one.id);
			say("list", mapper.addAll(items), items.stream().map(i -> i.id).toList());
			Map<String, Object> row = new TreeMap<>(Map.of("a", 7));
			say("select key", mapper.hold(row), row);
			session.commit();
		}
		List<Item> more = IntStream.range(0, 5).mapToObj(i -> new Item("more " + i)).toList();
		try (SqlSession session = factory.openSession(ExecutorType.BATCH)) {
			more.forEach(session.getMapper(Mapper.class)::add);
			session.commit();
		}
		say("batch", more.stream().map(i -> i.id).toList());
	}

	/** A table as jOOQ's generator writes it. */
	static class Parts extends TableImpl<Record> {
		final TableField<Record, Long> id = createField(DSL.name("id"), SQLDataType.BIGINT.nullable(false).identity(true), this);
		final TableField<Record, String> a = createField(DSL.name("a"), SQLDataType.VARCHAR(40), this);

		Parts() {
			super(DSL.name("parts"));
		}

		@Override
		public Identity<Record, ?> getIdentity() {
			return Internal.createIdentity(this, id);
		}

		@Override
		@SuppressWarnings("unchecked")
		public UniqueKey<Record> getPrimaryKey() {
			return Internal.createUniqueKey(this, DSL.name("PRIMARY"), new TableField[] {id}, true);
		}
	}

	static void jooq(HikariDataSource pool) throws SQLException {
		boolean returns; // INSERT ... RETURNING, which MySQL Connector/J does not expect
		try (Connection c = pool.getConnection()) {
			returns = c.getMetaData().getDatabaseProductVersion().contains("MariaDB") && c.getMetaData().getDriverName().contains("MariaDB");
		}
		DSLContext db = DSL.using(pool, returns ? SQLDialect.MARIADB : SQLDialect.MYSQL);
		Parts parts = new Parts();
		say("returning", db.insertInto(parts, parts.a).values("one").returningResult(parts.id).fetchOne().value1());
		say("two", db.insertInto(parts, parts.a).values("x").values("y").execute());
		var row = db.newRecord(parts);
		row.set(parts.a, "record");
		say("record", db.insertInto(parts).set(row).returning(parts.id).fetchOne(parts.id));
		say("batch", db.batch(db.insertInto(parts, parts.a).values((String) null)).bind("b1").bind("b2").execute());
		try {
			db.transaction(t -> {
				t.dsl().insertInto(parts, parts.a).values("rolled back").execute();
				throw new IllegalStateException("no");
			});
		} catch (IllegalStateException e) {
			say("rolled back", e.getMessage());
		}
		try {
			db.insertInto(DSL.table("items"), DSL.field("sku")).values("tea").execute();
		} catch (DataAccessException e) {
			say("duplicate", e.getCause(SQLException.class).getErrorCode());
		}
		say("parts", db.selectFrom(parts).orderBy(parts.id).fetch().intoMaps());
	}
}
