// What Node's mysql2 sees: by text, prepared, and with commands sent without waiting for the answers.
const fs = require('fs');
const { Readable } = require('stream');
const mysql = require('mysql2');

const env = process.env;
const config = {
  host: env.DB_HOST, port: Number(env.DB_PORT), user: env.DB_USER, password: env.DB_PASSWORD, database: env.DB_NAME,
  multipleStatements: true, supportBigNumbers: true, bigNumberStrings: true, dateStrings: true,
};
const db = mysql.createConnection(config);

function say(label, ...what) {
  console.log(label + ': ' + what.map((w) => (typeof w === 'string' ? w : JSON.stringify(w))).join(' '));
}

function tell(label, resolve) {
  return (err, result, fields) => {
    if (err) say(label, err.errno, err.sqlState, err.sqlMessage || err.message);
    else if (result.serverStatus & 0x20) tell(label, resolve)(null, { ...result, serverStatus: result.serverStatus & ~0x20 }, fields); // no index used
    else say(label, result, fields ? fields.filter(Boolean).flat().map((f) => f && [f.name, f.columnType, f.columnLength, f.flags & ~(512 | 4096), f.characterSet]) : '');
    resolve();
  };
}

const query = (label, sql, values) => new Promise((resolve) => db.query(sql, values, tell(label, resolve)));
const execute = (label, sql, values) => new Promise((resolve) => db.execute(sql, values, tell(label, resolve)));

(async () => {
  await query('text', "INSERT INTO orders (customer) VALUES ('ann')");
  await query('last', 'SELECT LAST_INSERT_ID(), ROW_COUNT()');
  await query('quotes', 'INSERT INTO orders (customer) VALUES (?)', ["it's \\ \"x\" `y` -- ; \n ü"]);
  await query('set', 'INSERT INTO orders SET ?', { customer: 'set', total: 5 });
  await query('many', 'INSERT INTO batches (a, b) VALUES ?', [Array.from({ length: 500 }, (_, i) => [i, 'row ' + i])]);
  await query('brought key', "INSERT INTO orders (id, customer) VALUES (1000, 'k')");
  await query('after', "INSERT INTO orders (customer) VALUES ('after')");
  const upsert = 'INSERT INTO items (sku, stock) VALUES (?, ?) ON DUPLICATE KEY UPDATE stock = VALUES(stock)';
  for (const stock of [1, 2, 2]) await query('upsert', upsert, ['tea', stock]);
  for (const stock of [1, 3, 3]) await execute('upsert, prepared', upsert, ['cup', stock]);
  await query('ignore', "INSERT IGNORE INTO ignored (sku) VALUES ('a')");
  await query('ignore, known', "INSERT IGNORE INTO ignored (sku) VALUES ('a')");
  await query('select', 'INSERT INTO copies (customer, total) SELECT customer, total FROM orders ORDER BY id');
  await query('duplicate', "INSERT INTO items (sku) VALUES ('tea')");
  await query('syntax', 'INSERT INTO orders (customer) VALUES (');
  await query('no table', 'INSERT INTO nowhere (a) VALUES (1)');
  for (const id of [null, 500, 0, '700', null]) await execute('key', 'INSERT INTO keyed (id, a) VALUES (?, ?)', [id, 1]);
  const typed = 'INSERT INTO typed (i, u, f, d, s, b, t, y) VALUES (?, ?, ?, ?, ?, ?, ?, ?)';
  const row = [-7, '18446744073709551615', 0.0015, '-12345.678900', 'ü漢', Buffer.from([0, 1, 254, 255, 92, 39]), '2026-12-31 01:02:03.456789', '1999-01-02'];
  await execute('typed', typed, row);
  await execute('typed', typed, ['8', ...row.slice(1)]);
  for (let i = 0; i < 8; i++) await execute('typed', typed, row.map((v, j) => (i === j ? null : v)));
  await execute('typed rows', 'SELECT * FROM typed WHERE id > ? ORDER BY id', [0]);
  await execute('prepared, error', 'INSERT INTO items (sku) VALUES (?)', ['tea']);
  await execute('prepared, no column', 'INSERT INTO failing (nothing) VALUES (?)', ['tea']);
  await query('several', "INSERT INTO parts (a) VALUES ('1'), ('2'); SELECT a FROM parts ORDER BY id; INSERT INTO nested (a) SELECT 1 UNION SELECT 2; INSERT INTO parts (a) VALUES ('3')");
  await query('several, error', "INSERT INTO parts (a) VALUES ('4'); INSERT INTO failing (a) VALUES (NULL); INSERT INTO parts (a) VALUES ('5')");

  // Without waiting.
  const all = [];
  for (let i = 0; i < 50; i++) {
    switch (i % 5) {
      case 0: all.push(query('pipelined ' + i, 'INSERT INTO held (a) VALUES (?)', [i])); break;
      case 1: all.push(execute('pipelined ' + i, 'INSERT INTO held (a) VALUES (?)', [i])); break;
      case 2: all.push(query('pipelined ' + i, 'SELECT LAST_INSERT_ID()')); break;
      case 3: all.push(query('pipelined ' + i, 'INSERT INTO failing (nothing) VALUES (1)')); break;
      case 4: all.push(new Promise((resolve) => db.ping((err) => { say('pipelined ' + i, err); resolve(); })));
    }
  }
  await Promise.all(all);
  await query('held', 'SELECT * FROM held ORDER BY id');

  await query('begin', 'START TRANSACTION');
  await query('in transaction', 'INSERT INTO parts (a) VALUES (9)');
  await query('rollback', 'ROLLBACK');
  await query('parts', 'SELECT * FROM parts ORDER BY id');
  const body = Buffer.alloc((16 << 20) + 5, Buffer.from([255, 254, 92, 39, 0]));
  await execute('file', 'INSERT INTO files (name, body) VALUES (?, ?)', ['f', body]);
  await query('file, text', 'INSERT INTO files (name, body) VALUES (?, ?)', ['g', body.subarray(0, 1 << 20)]);
  await query('files', 'SELECT id, LENGTH(body), SHA2(body, 256) FROM files ORDER BY id');
  await new Promise((resolve) => db.query('SELECT body FROM files WHERE id = 1', (err, rows) => { say('file back', err, rows && rows[0].body.equals(body)); resolve(); }));
  await new Promise((resolve) => db.query({ sql: "LOAD DATA LOCAL INFILE 'words' INTO TABLE words (word, n)", infileStreamFactory: () => Readable.from([Buffer.from('one\t1\ntwo\t2\n')]) }, tell('load', resolve)));
  await query('words', 'SELECT * FROM words ORDER BY id');
  await new Promise((resolve) => db.changeUser(config, (err) => { say('changeUser', err); resolve(); }));
  await query('after changeUser', 'INSERT INTO keyed (a) VALUES (1)');
  await query('orders', 'SELECT * FROM orders ORDER BY id');
  await new Promise((resolve) => db.end(resolve));
  say('end');
})();
