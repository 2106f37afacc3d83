// What programs on Knex see, and those that build on it.
const env = process.env;
const db = require('knex')({ client: 'mysql2', connection: { host: env.DB_HOST, port: Number(env.DB_PORT), user: env.DB_USER, password: env.DB_PASSWORD, database: env.DB_NAME }, pool: { min: 1, max: 1 } });
const say = (label, ...what) => console.log(label + ': ' + JSON.stringify(what));

(async () => {
  say('insert', await db('orders').insert({ customer: "it's \\ ü" }));
  say('several', await db('orders').insert([{ customer: 'a' }, { customer: 'b', total: 3 }, { total: 4 }]));
  say('batches', await db.batchInsert('batches', Array.from({ length: 100 }, (_, i) => ({ a: i, b: 'row ' + i })), 30));
  for (const stock of [1, 2]) say('merge', await db('items').insert({ sku: 'tea', stock }).onConflict('sku').merge());
  for (const sku of ['a', 'b']) say('ignore', await db('ignored').insert({ sku }).onConflict('sku').ignore());
  await db('items').insert({ sku: 'tea' }).catch((e) => say('duplicate', e.errno));
  await db.transaction(async (t) => {
    await t('parts').insert({ a: 'rolled back' });
    throw new Error('no');
  }).catch((e) => say('rolled back', e.message));
  say('kept', await db.transaction((t) => t('parts').insert({ a: 'kept' })));
  await db('copies').insert(db('orders').select('id', 'customer', 'total').where('id', '<', 3));
  say('select without keys', await db(db.raw('?? (??, ??)', ['none', 'customer', 'total'])).insert(db('orders').select('customer', 'total')));
  say('orders', await db('orders').orderBy('id'));
  say('none', await db('none').orderBy('id'));
  await db.destroy();
  say('end');
})();
