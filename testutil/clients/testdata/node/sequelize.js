// What programs on Sequelize see, whose keys are autoIncrement.
const { Sequelize, DataTypes } = require('sequelize');

const env = process.env;
const db = new Sequelize(env.DB_NAME, env.DB_USER, env.DB_PASSWORD, { host: env.DB_HOST, port: Number(env.DB_PORT), dialect: 'mysql', logging: false, pool: { max: 1 } });
const say = (label, ...what) => console.log(label + ': ' + JSON.stringify(what));
const id = (type) => ({ type, primaryKey: true, autoIncrement: true });
const options = { timestamps: false, freezeTableName: true };
const Order = db.define('orders', { id: id(DataTypes.BIGINT), customer: DataTypes.STRING, total: DataTypes.DECIMAL(10, 2) }, options);
const Item = db.define('items', { id: id(DataTypes.INTEGER), sku: DataTypes.STRING, stock: DataTypes.INTEGER }, options);
const Part = db.define('parts', { id: id(DataTypes.BIGINT), a: DataTypes.STRING }, options);
const values = (rows) => rows.map((r) => r.get({ plain: true }));

(async () => {
  say('create', (await Order.create({ customer: "it's \\ ü" })).get({ plain: true }));
  say('build', (await Order.build({ customer: 'b', total: 7 }).save()).id);
  say('bulk', values(await Order.bulkCreate(Array.from({ length: 50 }, (_, i) => ({ customer: 'o' + i })))));
  for (const stock of [1, 2, 2]) say('upsert', (await Item.upsert({ sku: 'tea', stock })).map((v) => (v && v.get ? v.get({ plain: true }) : v)));
  await Item.bulkCreate([{ sku: 'tea', stock: 5 }, { sku: 'tea', stock: 6 }], { updateOnDuplicate: ['stock'] }); // its ids are wrong on any server
  say('ignoring bulk', values(await Item.bulkCreate([{ sku: 'tea', stock: 8 }], { ignoreDuplicates: true })));
  for (let i = 0; i < 2; i++) {
    const [item, created] = await Item.findOrCreate({ where: { sku: 'pot' }, defaults: { stock: 3 } });
    say('found or created', item.id > 0, item.sku, item.stock, created);
  }
  await Item.create({ sku: 'tea' }).catch((e) => say('duplicate', e.name, e.parent.errno));
  await db.transaction(async (t) => {
    await Part.create({ a: 'rolled back' }, { transaction: t });
    throw new Error('no');
  }).catch((e) => say('rolled back', e.message));
  await db.transaction(async (transaction) => say('kept', (await Part.create({ a: 'kept' }, { transaction })).id));
  say('replaced', await db.query('INSERT INTO parts (a) VALUES (:a)', { replacements: { a: 'raw' }, type: 'INSERT' }));
  say('bound', await db.query('INSERT INTO parts (a) VALUES ($a)', { bind: { a: 'raw' }, type: 'INSERT' }));
  say('items', values(await Item.findAll({ attributes: ['sku', 'stock'], order: ['id'] })));
  say('count', await Order.count(), await Order.max('id'));
  await db.close();
  say('end');
})();
