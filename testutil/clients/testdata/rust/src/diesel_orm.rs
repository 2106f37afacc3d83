// What Diesel sees. It prepares every statement but those of batch_execute, and writes DEFAULT for the key of a model without one.
use crate::env;
use diesel::connection::{CacheSize, SimpleConnection};
use diesel::dsl::DuplicatedKeys;
use diesel::prelude::*;
use diesel::result::Error::RollbackTransaction;
use diesel::sql_types::{Integer, Text, Unsigned};
use diesel::{delete, insert_into, insert_or_ignore_into, replace_into, sql_query, update};

mod schema {
    diesel::table! { orders (id) { id -> BigInt, customer -> Nullable<Text>, } }
    diesel::table! { items (id) { id -> Unsigned<Integer>, sku -> Text, stock -> Integer, } }
    diesel::table! { ignored (id) { id -> BigInt, sku -> Text, stock -> Integer, } }
    diesel::table! { copies (id) { id -> BigInt, customer -> Nullable<Text>, } }
    diesel::table! { batches (id) { id -> BigInt, a -> Integer, b -> Text, } }
    diesel::table! { keyed (id) { id -> BigInt, a -> Nullable<Integer>, } }
    diesel::table! { held (id) { id -> BigInt, a -> Integer, } }
    diesel::table! { nested (id) { id -> BigInt, a -> Integer, } }
    diesel::table! { made (id) { id -> BigInt, name -> Text, } }
}
use schema::{batches, copies, held, ignored, items, keyed, made, nested, orders};

#[declare_sql_function]
extern "SQL" {
    fn last_insert_id() -> Unsigned<BigInt>;
    #[sql_name = "LAST_INSERT_ID"]
    fn last_insert_id_of(id: Unsigned<Integer>) -> Unsigned<Integer>;
    #[sql_name = "VALUES"]
    fn new_value(stock: Integer) -> Integer;
}

#[derive(Insertable)]
#[diesel(table_name = orders)]
struct NewOrder<'a> {
    customer: Option<&'a str>,
}

#[derive(Insertable)]
#[diesel(table_name = batches)]
struct NewBatch {
    a: i32,
    b: String,
}

#[derive(Insertable, Identifiable, Queryable, Selectable, AsChangeset, Debug)]
#[diesel(table_name = keyed)]
struct Keyed {
    #[diesel(deserialize_as = i64)]
    id: Option<i64>,
    a: Option<i32>,
}

#[derive(QueryableByName, Debug)]
#[allow(dead_code)] // printed
struct Sums {
    #[diesel(sql_type = Text)]
    sums: String,
}

fn last_id(db: &mut MysqlConnection) -> QueryResult<u64> {
    diesel::select(last_insert_id()).get_result(db)
}

pub fn run() -> QueryResult<()> {
    let password = env("DB_PASSWORD").replace(' ', "%20");
    let url = format!("mysql://{}:{password}@{}:{}/{}", env("DB_USER"), env("DB_HOST"), env("DB_PORT"), env("DB_NAME"));
    let db = &mut MysqlConnection::establish(&url).unwrap();
    println!("text: {:?}", db.batch_execute("INSERT INTO orders (customer) VALUES ('ann'); INSERT INTO orders (customer) VALUES ('bob')"));
    println!("text, id: {}", last_id(db)?);
    let many = [NewOrder { customer: Some("it's \\ ü") }, NewOrder { customer: None }];
    println!("struct: {} {}", insert_into(orders::table).values(&many[0]).execute(db)?, last_id(db)?);
    println!("structs: {} {}", insert_into(orders::table).values(&many).execute(db)?, last_id(db)?);
    println!("defaults: {} {}", insert_into(orders::table).default_values().execute(db)?, last_id(db)?);
    for id in [None, Some(500), Some(0), None] {
        println!("key: {} {}", insert_into(keyed::table).values(Keyed { id, a: Some(1) }).execute(db)?, last_id(db)?);
    }
    println!("keys: {:?}", insert_into(keyed::table).values(vec![Keyed { id: Some(900), a: Some(2) }, Keyed { id: None, a: None }]).execute(db));
    println!("keyed: {:?}", keyed::table.order(keyed::id).load::<Keyed>(db)?);
    println!("saved: {}", update(keyed::table.find(500)).set(keyed::a.eq(9)).execute(db)?);
    println!("deleted: {}", delete(keyed::table.filter(keyed::a.eq(9))).execute(db)?);

    let rows: Vec<_> = (0..50).map(|i| NewBatch { a: i, b: format!("row {i}") }).collect();
    println!("batch: {} {}", insert_into(batches::table).values(&rows).execute(db)?, last_id(db)?);
    db.set_prepared_statement_cache_size(CacheSize::Disabled);
    for row in &rows[..2] {
        println!("not cached: {} {}", insert_into(batches::table).values(row).execute(db)?, last_id(db)?);
    }
    db.set_prepared_statement_cache_size(CacheSize::Unbounded);
    println!("batches: {:?}", sql_query("SELECT CONCAT_WS(' ', COUNT(*), MIN(id), MAX(id), SUM(id = a + 1)) AS sums FROM batches").load::<Sums>(db)?);

    for stock in [1, 2, 2] {
        let changed = insert_into(items::table).values((items::sku.eq("tea"), items::stock.eq(stock))).on_conflict(DuplicatedKeys).do_update()
            .set((items::id.eq(last_insert_id_of(items::id)), items::stock.eq(new_value(items::stock)))).execute(db)?;
        println!("upsert: {changed} {}", last_id(db)?);
    }
    println!("duplicate: {:?}", insert_into(items::table).values(items::sku.eq("tea")).execute(db));
    println!("do nothing: {}", insert_into(items::table).values(items::sku.eq("tea")).on_conflict(DuplicatedKeys).do_nothing().execute(db)?);
    println!("replace: {} {}", replace_into(items::table).values((items::sku.eq("tea"), items::stock.eq(7))).execute(db)?, last_id(db)?);
    println!("items: {:?}", items::table.load::<(u32, String, i32)>(db)?);
    for sku in ["a", "a", "b"] {
        println!("ignore: {}", insert_or_ignore_into(ignored::table).values((ignored::sku.eq(sku), ignored::stock.eq(1))).execute(db)?);
    }
    println!("ignored: {:?}", ignored::table.select(ignored::sku).load::<String>(db)?);
    println!("syntax: {:?}", sql_query("INSERT INTO items (sku) VALUES (").execute(db));

    println!("transaction: {:?}", db.transaction(|db| -> QueryResult<()> {
        println!("in transaction: {} {}", insert_into(held::table).values(held::a.eq(1)).execute(db)?, last_id(db)?);
        Err(RollbackTransaction)
    }));
    db.transaction(|db| -> QueryResult<()> {
        insert_into(nested::table).values(nested::a.eq(1)).execute(db)?;
        let inner = db.transaction(|db| -> QueryResult<()> {
            println!("in savepoint: {} {}", insert_into(nested::table).values(nested::a.eq(2)).execute(db)?, last_id(db)?);
            Err(RollbackTransaction)
        });
        println!("savepoint: {inner:?}");
        insert_into(nested::table).values(nested::a.eq(3)).execute(db).map(drop)
    })?;
    println!("held, nested: {} {:?}", held::table.count().get_result::<i64>(db)?, nested::table.order(nested::id).load::<(i64, i32)>(db)?);

    let copied = orders::table.select(orders::customer).order(orders::id).insert_into(copies::table).into_columns(copies::customer).execute(db)?;
    println!("select: {copied} {}", last_id(db)?);
    println!("copies: {:?}", copies::table.order(copies::id).load::<(i64, Option<String>)>(db)?);

    sql_query("CREATE TABLE made (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) NOT NULL)").execute(db)?;
    println!("created: {} {}", insert_into(made::table).values(made::name.eq("first")).execute(db)?, last_id(db)?);
    println!("sql_query: {} {}", sql_query("INSERT INTO made (name) VALUES (?), (?)").bind::<Text, _>("b").bind::<Text, _>("c").execute(db)?, last_id(db)?);
    println!("made: {:?}", made::table.order(made::id).load::<(i64, String)>(db)?);
    println!("end");
    Ok(())
}
