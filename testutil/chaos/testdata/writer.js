// A writer in Node; programs_test.go describes what writers do.
const { setTimeout } = require('timers/promises');
const mysql = require('mysql2/promise');

const ROWS = 20;
const { env } = process;
const ports = env.DB_PORTS.split(',');
const writer = Number(env.WRITER);
let next = Number(env.NEXT);
let left = Number(env.LEFT);

// Reserves the numbers of the next rows: those of a failed statement are not reused.
function take(rows) {
  next += rows;
  return Array.from({ length: rows }, (_, i) => next - rows + i);
}

async function text(db, rows) {
  const numbers = take(rows);
  const [result] = await db.query(`INSERT INTO orders (writer, n) VALUES ${numbers.map((n) => `(${writer}, ${n})`).join(', ')}`);
  return `${rows} ${numbers[0]} ${result.insertId}\n`;
}

async function prepared(db, rows) {
  const numbers = take(rows);
  const [result] = await db.execute(`INSERT INTO orders (writer, n) VALUES (?, ?)${', (?, ?)'.repeat(rows - 1)}`, numbers.flatMap((n) => [writer, n]));
  return `${rows} ${numbers[0]} ${result.insertId}\n`;
}

(async () => {
  for (let turn = writer, i = 0; left > 0; turn++) {
    let db;
    try {
      db = await mysql.createConnection({
        host: env.DB_HOST, port: Number(ports[turn % ports.length]), user: env.DB_USER, password: env.DB_PASSWORD, database: env.DB_NAME,
      });
      db.on('error', () => {}); // the next statement returns the error
      for (; left > 0; i++) {
        let rows = ROWS;
        let acknowledged;
        switch (i % 8) {
          case 0:
            acknowledged = await text(db, rows = 1);
            break;
          case 1:
            acknowledged = await prepared(db, rows = 1);
            break;
          case 2:
            await db.beginTransaction();
            acknowledged = await text(db, ROWS) + await prepared(db, 1);
            await db.commit();
            rows = ROWS + 1;
            break;
          case 3: case 5: case 7:
            acknowledged = await prepared(db, ROWS);
            break;
          default:
            acknowledged = await text(db, ROWS);
        }
        process.stdout.write(acknowledged);
        left -= rows;
      }
      await db.end();
    } catch (e) {
      if (!e.code && !e.errno) throw e; // a bug, not an error of the server or the network
      process.stdout.write(`! ${e.errno || 0} ${e.code || ''} ${e.message.replaceAll('\n', ' ')}\n`);
      if (db) db.destroy();
      await setTimeout(50);
    }
  }
})();
