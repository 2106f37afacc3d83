// What programs on Prisma see, with keys of autoincrement().
const { PrismaClient } = require('prisma-client');
const { PrismaMariaDb } = require('@prisma/adapter-mariadb');

const env = process.env;
const adapter = new PrismaMariaDb({ host: env.DB_HOST, port: Number(env.DB_PORT), user: env.DB_USER, password: env.DB_PASSWORD, database: env.DB_NAME, connectionLimit: 1, allowPublicKeyRetrieval: true });
const db = new PrismaClient({ adapter });
const say = (label, what) => console.log(label + ': ' + JSON.stringify(what, (_, v) => (typeof v === 'bigint' ? v + 'n' : v)));

(async () => {
  say('create', await db.orders.create({ data: { customer: "it's \\ ü" } }));
  say('createMany', await db.orders.createMany({ data: Array.from({ length: 100 }, (_, i) => ({ customer: 'o' + i })) }));
  for (const stock of [1, 2]) say('upsert', await db.items.upsert({ where: { sku: 'tea' }, create: { sku: 'tea', stock }, update: { stock } }));
  say('skipDuplicates', await db.items.createMany({ data: [{ sku: 'tea' }], skipDuplicates: true }));
  await db.items.create({ data: { sku: 'tea' } }).catch((e) => say('duplicate', e.code));
  say('transaction', await db.$transaction([db.orders.create({ data: { customer: 'a' } }), db.orders.create({ data: { customer: 'b' } })]));
  await db.$transaction(async (tx) => {
    await tx.orders.create({ data: { customer: 'rolled back' } });
    throw new Error('no');
  }).catch((e) => say('rolled back', e.message));
  say('raw', await db.$executeRaw`INSERT INTO copies (customer) SELECT customer FROM orders WHERE id < ${4}`);
  say('copies', await db.$queryRaw`SELECT * FROM copies ORDER BY id`);
  say('orders', await db.orders.findMany({ orderBy: { id: 'desc' }, take: 3 }));
  say('count', await db.orders.aggregate({ _count: true, _min: { id: true }, _max: { id: true } }));
  await db.$disconnect();
  say('end');
})();
