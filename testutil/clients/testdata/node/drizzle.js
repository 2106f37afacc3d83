// What programs on Drizzle see, with keys of autoincrement().
const mysql = require('mysql2/promise');
const { drizzle } = require('drizzle-orm/mysql2');
const { bigint, decimal, int, mysqlTable, varchar } = require('drizzle-orm/mysql-core');
const { asc, eq, lt, sql } = require('drizzle-orm');

const env = process.env;
const say = (label, ...what) => console.log(label + ': ' + JSON.stringify(what));
const id = () => bigint('id', { mode: 'number' }).autoincrement().primaryKey();
const orders = mysqlTable('orders', { id: id(), customer: varchar('customer', { length: 100 }), total: decimal('total', { precision: 10, scale: 2 }).default('1.50') });
const items = mysqlTable('items', { id: int('id').autoincrement().primaryKey(), sku: varchar('sku', { length: 20 }).notNull(), stock: int('stock').default(0) });
const copies = mysqlTable('copies', { id: id(), customer: varchar('customer', { length: 100 }), total: decimal('total', { precision: 10, scale: 2 }) });

(async () => {
  const pool = mysql.createPool({ host: env.DB_HOST, port: Number(env.DB_PORT), user: env.DB_USER, password: env.DB_PASSWORD, database: env.DB_NAME, connectionLimit: 1 });
  const db = drizzle(pool);
  say('insert', (await db.insert(orders).values({ customer: "it's \\ ü" }))[0].insertId);
  say('ids', await db.insert(orders).values(Array.from({ length: 50 }, (_, i) => ({ customer: 'o' + i }))).$returningId());
  for (const stock of [1, 2]) say('upsert', (await db.insert(items).values({ sku: 'tea', stock }).onDuplicateKeyUpdate({ set: { stock } }))[0].affectedRows);
  say('ignore', (await db.insert(items).ignore().values({ sku: 'tea' }))[0].affectedRows);
  await db.insert(items).values({ sku: 'tea' }).catch((e) => say('duplicate', e.cause.errno));
  await db.transaction(async (tx) => {
    await tx.insert(orders).values({ customer: 'rolled back' });
    tx.rollback();
  }).catch((e) => say('rolled back', e.message));
  const prepared = db.insert(orders).values({ customer: sql.placeholder('customer') }).prepare();
  for (const customer of ['a', 'b']) say('prepared', (await prepared.execute({ customer }))[0].insertId > 51);
  say('select', (await db.insert(copies).select(db.select({ id: orders.id, customer: orders.customer, total: orders.total }).from(orders).where(lt(orders.id, 4))))[0].affectedRows);
  say('raw', (await db.execute(sql`INSERT INTO copies (customer) SELECT customer FROM orders WHERE id < ${4} ORDER BY id`))[0].affectedRows);
  say('copies', await db.select().from(copies).orderBy(asc(copies.id)));
  say('tea', await db.select({ sku: items.sku, stock: items.stock }).from(items).where(eq(items.sku, 'tea')));
  await pool.end();
  say('end');
})();
