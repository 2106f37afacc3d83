import jakarta.persistence.*;
import java.math.BigDecimal;
import java.util.*;
import java.util.logging.*;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

/** What programs on Hibernate see, whose keys are IDENTITY: Orm mariadb|mysql */
public class Orm {
	@Entity(name = "orders")
	static class Order {
		@Id
		@GeneratedValue(strategy = GenerationType.IDENTITY)
		Long id;
		String customer;
		BigDecimal total;

		Order() {}

		Order(String customer) {
			this.customer = customer;
			total = new BigDecimal("2.50");
		}
	}

	@Entity(name = "items")
	static class Item {
		@Id
		@GeneratedValue(strategy = GenerationType.IDENTITY)
		Integer id;
		String sku;
		int stock;

		Item() {}

		Item(String sku) {
			this.sku = sku;
		}
	}

	static void say(String label, Object... what) {
		System.out.println(label + ": " + Arrays.deepToString(what));
	}

	public static void main(String[] args) {
		Logger.getLogger("org.hibernate").setLevel(Level.OFF);
		Map<String, String> env = System.getenv();
		Configuration c = new Configuration().addAnnotatedClass(Order.class).addAnnotatedClass(Item.class);
		c.setProperty("hibernate.connection.url", "jdbc:" + args[0] + "://" + env.get("DB_HOST") + ":" + env.get("DB_PORT") + "/" + env.get("DB_NAME")
				+ "?allowPublicKeyRetrieval=true&" + (args[0].equals("mysql") ? "sslMode=DISABLED&useServerPrepStmts=true&rewriteBatchedStatements=true" : "sslMode=disable"));
		c.setProperty("hibernate.connection.username", env.get("DB_USER"));
		c.setProperty("hibernate.connection.password", env.get("DB_PASSWORD"));
		c.setProperty("hibernate.jdbc.batch_size", "50");
		try (SessionFactory factory = c.buildSessionFactory()) {
			factory.inTransaction(s -> {
				Order one = new Order("it's \\ ü");
				s.persist(one);
				say("one", one.id);
				List<Long> ids = new ArrayList<>();
				for (int i = 0; i < 100; i++) {
					Order o = new Order("o" + i);
					s.persist(o);
					ids.add(o.id);
				}
				s.flush();
				say("hundred", ids);
			});
			factory.inTransaction(s -> {
				Item tea = new Item("tea");
				s.persist(tea);
				tea.stock = 7;
				say("tea", tea.id);
			});
			try {
				factory.inTransaction(s -> s.persist(new Item("tea")));
			} catch (PersistenceException e) {
				say("duplicate", e.getClass().getSimpleName());
			}
			try {
				factory.inTransaction(s -> {
					s.persist(new Order("rolled back"));
					throw new IllegalStateException("no");
				});
			} catch (IllegalStateException e) {
				say("rolled back", e.getMessage());
			}
			factory.inTransaction(s -> {
				say("insert select", s.createMutationQuery("insert into items (sku, stock) select concat('of ', o.customer), 1 from orders o where o.id < 4").executeUpdate());
				say("items", s.createQuery("select i.id, i.sku, i.stock from items i order by i.id", Object[].class).list().toArray());
				say("orders", s.createQuery("select count(o), min(o.id), max(o.id), sum(o.total) from orders o", Object[].class).list().toArray());
				Order last = s.createQuery("from orders o order by o.id desc", Order.class).setMaxResults(1).getSingleResult();
				last.customer = "changed";
				s.remove(s.find(Order.class, 2L));
			});
			factory.inTransaction(s -> say("left", s.createQuery("select count(o) from orders o", Long.class).getSingleResult()));
		}
		say("end");
	}
}
