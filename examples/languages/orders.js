// Writes orders to both shards in turn, and prints how many seconds that took.
const mysql = require('mysql2/promise');

(async () => {
  const env = process.env;
  const connections = await Promise.all(env.SHARDS.split(',').map((database) => mysql.createConnection({
    host: env.DB_HOST, port: Number(env.DB_PORT), user: env.DB_USER, password: env.DB_PASSWORD, database,
  })));
  const start = process.hrtime.bigint();
  for (let i = 0; i < Number(env.ROWS); i++) {
    const [result] = await connections[i % 2].query("INSERT INTO orders (program, total) VALUES ('Node', ?)", [i]);
    if (!result.insertId) throw new Error('an order without an id');
  }
  console.log(Number(process.hrtime.bigint() - start) / 1e9);
  await Promise.all(connections.map((c) => c.end()));
})();
