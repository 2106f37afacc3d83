// What Rust's clients see: clients mysql | sqlx | diesel, or clients insert URL STATEMENT, which prints the id.
use mysql::{params, prelude::*};
use sqlx::{mysql::MySqlConnectOptions, Connection, Executor, Row};
use std::env::{args, var};

mod diesel_orm;

const UPSERT: &str = "INSERT INTO items (sku, stock) VALUES (?, ?) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), stock = VALUES(stock)";
const COPY: &str = "INSERT INTO copies (customer, total) SELECT customer, total FROM orders ORDER BY id";
const SUMS: &str = "SELECT CONCAT_WS(' ', COUNT(*), MIN(id), MAX(id), SUM(id = a + 1)) FROM batches";

fn env(name: &str) -> String {
    var(name).unwrap()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args: Vec<String> = args().collect();
    match args[1].as_str() {
        "insert" => {
            let mut db = mysql::Conn::new(args[2].as_str()).unwrap();
            db.query_drop(&args[3]).unwrap();
            println!("{}", db.last_insert_id());
        }
        "mysql" => run_mysql().unwrap(),
        "diesel" => diesel_orm::run().unwrap(),
        _ => run_sqlx().await.unwrap(),
    }
}

fn run_mysql() -> mysql::Result<()> {
    let options = mysql::OptsBuilder::new().ip_or_hostname(Some(env("DB_HOST"))).tcp_port(env("DB_PORT").parse().unwrap())
        .user(Some(env("DB_USER"))).pass(Some(env("DB_PASSWORD"))).db_name(Some(env("DB_NAME")));
    let mut db = mysql::Conn::new(options)?;
    db.query_drop("INSERT INTO orders (customer) VALUES ('ann')")?;
    println!("text: {} {}", db.affected_rows(), db.last_insert_id());
    db.exec_drop("INSERT INTO orders (customer) VALUES (:a), (:b)", params! { "a" => "it's \\ ü", "b" => None::<String> })?;
    println!("prepared: {} {}", db.affected_rows(), db.last_insert_id());
    for id in [None, Some(500), Some(0), None] {
        db.exec_drop("INSERT INTO keyed (id, a) VALUES (?, 1)", (id,))?;
        println!("key: {}", db.last_insert_id());
    }
    db.exec_batch("INSERT INTO batches (a, b) VALUES (?, ?)", (0..50).map(|i| (i, format!("row {i}"))))?;
    println!("batches: {:?}", db.query_first::<String, _>(SUMS)?);
    for stock in [1, 2, 2] {
        db.exec_drop(UPSERT, ("tea", stock))?;
        println!("upsert: {} {}", db.affected_rows(), db.last_insert_id());
    }
    println!("duplicate: {:?}", db.query_drop("INSERT INTO items (sku) VALUES ('tea')"));
    println!("syntax: {:?}", db.query_drop("INSERT INTO items (sku) VALUES ("));
    let mut transaction = db.start_transaction(mysql::TxOpts::default())?;
    transaction.query_drop("INSERT INTO held (a) VALUES (1)")?;
    println!("in transaction: {:?}", transaction.last_insert_id());
    transaction.rollback()?;
    db.query_drop(COPY)?;
    println!("select: {} {}", db.affected_rows(), db.last_insert_id());
    println!("copies: {:?}", db.query::<(u64, Option<String>), _>("SELECT id, customer FROM copies ORDER BY id")?);
    println!("end");
    Ok(())
}

async fn run_sqlx() -> sqlx::Result<()> {
    let options = MySqlConnectOptions::new().host(&env("DB_HOST")).port(env("DB_PORT").parse().unwrap())
        .username(&env("DB_USER")).password(&env("DB_PASSWORD")).database(&env("DB_NAME"));
    let mut db = sqlx::MySqlConnection::connect_with(&options).await?;
    let done = db.execute("INSERT INTO orders (customer) VALUES ('ann')").await?;
    println!("text: {} {}", done.rows_affected(), done.last_insert_id());
    let done = sqlx::query("INSERT INTO orders (customer) VALUES (?), (?)").bind("it's \\ ü").bind(None::<String>).execute(&mut db).await?;
    println!("prepared: {} {}", done.rows_affected(), done.last_insert_id());
    for id in [None, Some(500), Some(0), None] {
        let done = sqlx::query("INSERT INTO keyed (id, a) VALUES (?, 1)").bind(id).execute(&mut db).await?;
        println!("key: {}", done.last_insert_id());
    }
    let mut many = sqlx::QueryBuilder::new("INSERT INTO batches (a, b) ");
    many.push_values(0..50, |mut row, i| {
        row.push_bind(i).push_bind(format!("row {i}"));
    });
    println!("many: {}", many.build().execute(&mut db).await?.last_insert_id());
    println!("batches: {}", sqlx::query_scalar::<_, String>(SUMS).fetch_one(&mut db).await?);
    for stock in [1, 2, 2] {
        let done = sqlx::query(UPSERT).bind("tea").bind(stock).execute(&mut db).await?;
        println!("upsert: {} {}", done.rows_affected(), done.last_insert_id());
    }
    println!("duplicate: {:?}", db.execute("INSERT INTO items (sku) VALUES ('tea')").await.map_err(|e| e.to_string()));
    println!("syntax: {:?}", db.execute("INSERT INTO items (sku) VALUES (").await.map_err(|e| e.to_string()));
    let mut transaction = db.begin().await?;
    println!("in transaction: {}", sqlx::query("INSERT INTO held (a) VALUES (?)").bind(1).execute(&mut *transaction).await?.last_insert_id());
    transaction.rollback().await?;
    let done = sqlx::query(COPY).execute(&mut db).await?;
    println!("select: {} {}", done.rows_affected(), done.last_insert_id());
    for row in sqlx::query("SELECT id, customer FROM copies ORDER BY id").fetch_all(&mut db).await? {
        println!("copy: {} {:?}", row.get::<i64, _>(0), row.get::<Option<String>, _>(1));
    }
    println!("end");
    Ok(())
}
