// What Node's mariadb sees: mariadb.js bulk | single
// batch() sends the bulk command if the server has it and the option bulk is on.
const mariadb = require('mariadb');

const env = process.env;

function say(label, ...what) {
  console.log(label + ': ' + what.map((w) => (typeof w === 'string' ? w : JSON.stringify(w, (_, v) => (typeof v === 'bigint' ? v + 'n' : v)))).join(' '));
}

(async () => {
  const db = await mariadb.createConnection({
    host: env.DB_HOST, port: Number(env.DB_PORT), user: env.DB_USER, password: env.DB_PASSWORD, database: env.DB_NAME,
    multipleStatements: true, allowPublicKeyRetrieval: true, dateStrings: true, pipelining: true, bulk: process.argv[2] === 'bulk',
  });
  const run = async (label, promise) => {
    try {
      const r = await promise();
      say(label, r, r && r.meta ? r.meta.map((m) => [m.name(), m.type, m.columnLength, m.flags & ~(512 | 4096)]) : '');
    } catch (e) {
      say(label, e.errno, e.sqlState, e.sqlMessage);
    }
  };
  await run('text', () => db.query("INSERT INTO orders (customer) VALUES ('ann')"));
  await run('quotes', () => db.query('INSERT INTO orders (customer) VALUES (?)', ["it's \\ ü"]));
  await run('execute', () => db.execute('INSERT INTO orders (customer) VALUES (?)', ['x']));
  for (const id of [null, 500, 0, '700', null]) await run('key', () => db.execute('INSERT INTO keyed (id, a) VALUES (?, ?)', [id, 1]));
  await run('batch', () => db.batch('INSERT INTO batches (a, b) VALUES (?, ?)', Array.from({ length: 300 }, (_, i) => [i, i % 7 ? 'row ' + i : null])));
  await run('batches', () => db.query('SELECT COUNT(*), MIN(id), MAX(id), SUM(id = a + 1), COUNT(b) FROM batches'));
  await run('batch, one by one', () => db.batch({ sql: 'INSERT INTO parts (a) VALUES (?)', fullResult: true }, [['1'], ['2'], ['3']]));
  await run('batch with keys', () => db.batch('INSERT INTO keyed (id, a) VALUES (?, ?)', [[9000, 1], [9001, 2]]));
  await run('batch of upserts', () => db.batch('INSERT INTO items (sku, stock) VALUES (?, ?) ON DUPLICATE KEY UPDATE stock = VALUES(stock)', [['a', 1], ['b', 2], ['a', 3]]));
  await run('batch with an error', () => db.batch('INSERT INTO failing (a) VALUES (?)', [['x'], ['x'], ['y']]));
  await run('batch of updates', () => db.batch('UPDATE items SET stock = ? WHERE sku = ?', [[5, 'a'], [6, 'b']]));
  await run('items', () => db.query('SELECT sku, stock FROM items ORDER BY sku'));
  await run('select', () => db.query('INSERT INTO copies (customer) SELECT customer FROM orders ORDER BY id'));
  await run('several', () => db.query("INSERT INTO parts (a) VALUES ('4'); SELECT a FROM parts ORDER BY id; INSERT INTO parts (a) VALUES ('5'), ('6')"));
  await run('duplicate', () => db.query("INSERT INTO items (sku) VALUES ('a')"));
  await run('syntax', () => db.query('INSERT INTO orders (customer) VALUES ('));
  await run('returning', () => db.query("INSERT INTO orders (customer) VALUES ('r') RETURNING id, customer"));
  await run('before', () => db.query('INSERT INTO held (a) VALUES (0)'));
  // Without waiting.
  await Promise.all(Array.from({ length: 40 }, (_, i) => run('pipelined ' + i, () => (i % 2 ? db.query('INSERT INTO held (a) VALUES (?)', [i]) : db.query('SELECT LAST_INSERT_ID()')))));
  await db.beginTransaction();
  await run('in transaction', () => db.query('INSERT INTO held (a) VALUES (99)'));
  await db.rollback();
  await run('held', () => db.query('SELECT * FROM held ORDER BY id'));
  await db.reset().then(() => say('reset'), (e) => say('reset', e.errno));
  await run('after reset', () => db.query('INSERT INTO keyed (a) VALUES (8)'));
  await db.changeUser({ user: env.DB_USER, password: env.DB_PASSWORD, database: env.DB_NAME }).then(() => say('changeUser'), (e) => say('changeUser', e.errno, e.sqlMessage));
  await run('after changeUser', () => db.query('INSERT INTO keyed (a) VALUES (9)'));
  await run('keyed', () => db.query('SELECT * FROM keyed ORDER BY id'));
  await run('orders', () => db.query('SELECT * FROM orders ORDER BY id'));
  await db.end();
  say('end');
})();
