"""What Python's drivers see: dbapi.py pymysql | mysqldb | connector"""
import datetime
import decimal
import os
import sys
import tempfile

driver = sys.argv[1]
where = dict(host=os.environ["DB_HOST"], port=int(os.environ["DB_PORT"]), user=os.environ["DB_USER"],
             password=os.environ["DB_PASSWORD"], database=os.environ["DB_NAME"])
if driver == "pymysql":
    import pymysql as module
    where.update(local_infile=True, client_flag=module.constants.CLIENT.MULTI_STATEMENTS)
elif driver == "mysqldb":
    import MySQLdb as module
    where.update(local_infile=1)
else:
    import mysql.connector as module
    where.update(allow_local_infile=True, use_pure=True)

db = module.connect(**where, charset="utf8mb4")
db.autocommit(True) if driver != "connector" else setattr(db, "autocommit", True)
cur = db.cursor()


def say(label, *what):
    print(label + ":", *what, flush=True)


def info():
    if driver == "pymysql":
        status = (db._result.server_status or 0) & ~0x20  # whether an index was used
        return (db._result.message or b"").decode(), db._result.warning_count, hex(status)
    if driver == "mysqldb":
        return db.info(), db.warning_count()
    return cur.warning_count


def shown():
    rows = cur.fetchall() if cur.description else None
    columns = [d[:2] + d[6:7] for d in cur.description] if cur.description else None
    return "affected", cur.rowcount, "id", cur.lastrowid, "rows", rows, "columns", columns, "info", info()


def run(label, sql, args=None):
    try:
        cur.execute(sql, args)
        say(label, *shown())
    except module.Error as e:
        say(label, type(e).__name__, e.args)


def last():
    run("last id", "SELECT LAST_INSERT_ID(), ROW_COUNT()")


# By text, with what makes a text hard to read.
run("text", "INSERT INTO orders (customer) VALUES ('ann')")
last()
run("quotes", "INSERT INTO orders (customer, total) VALUES (%s, %s)", ("it's \\ \"x\" `y` -- ; \n ? ü 漢", decimal.Decimal("12.50")))
last()
run("three rows", "INSERT INTO orders (customer) VALUES ('a'), ('b'), ('c')")
last()
run("null and zero", "INSERT INTO orders (id, customer) VALUES (NULL, 'n'), (0, 'z'), (DEFAULT, 'd')")
run("set", "INSERT INTO orders SET customer = 'set', placed = %s", (datetime.datetime(2026, 2, 28, 23, 59, 59),))
run("no columns", "INSERT INTO keyed VALUES (NULL, 1)")
run("brought key", "INSERT INTO orders (id, customer) VALUES (1000, 'k')")
last()
run("after a brought key", "INSERT INTO orders (customer) VALUES ('after')")
run("comment", "/* c */ INSERT /* ; */ INTO orders -- x\n (customer) VALUES ('comment') # y")
run("returning", "INSERT INTO orders (customer) VALUES ('r1'), ('r2') RETURNING id, customer")

# Upserts, IGNORE, REPLACE.
upsert = "INSERT INTO items (sku, stock) VALUES (%s, %s) ON DUPLICATE KEY UPDATE stock = VALUES(stock)"
run("upsert, new", upsert, ("tea", 1))
last()
run("upsert, changed", upsert, ("tea", 2))
run("upsert, same", upsert, ("tea", 2))
run("upsert with id", "INSERT INTO items (sku, stock) VALUES ('tea', 5) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), stock = 5")
last()
run("ignore, new", "INSERT IGNORE INTO ignored (sku) VALUES ('a')")
run("ignore, known", "INSERT IGNORE INTO ignored (sku) VALUES ('a')")
run("ignore, warnings", "SHOW WARNINGS")
run("ignore, too long", "INSERT IGNORE INTO ignored (sku, stock) VALUES ('0123456789012345678901234', 'x')")
run("ignore, warnings", "SHOW WARNINGS")
run("replace", "REPLACE INTO ignored (sku, stock) VALUES ('a', 9)")

# INSERT ... SELECT.
run("select", "INSERT INTO copies (customer, total) SELECT customer, total FROM orders ORDER BY id LIMIT 5")
last()
run("select, none", "INSERT INTO none (customer) SELECT customer FROM orders WHERE 1 = 0")
run("select, rows", "SELECT * FROM copies ORDER BY id")

# Errors.
run("duplicate", "INSERT INTO items (sku) VALUES ('tea')")
run("duplicate key", "INSERT INTO orders (id) VALUES (1000)")
run("syntax", "INSERT INTO orders (customer) VALUES (")
run("no table", "INSERT INTO nowhere (a) VALUES (1)")
run("no column", "INSERT INTO failing (nothing) VALUES (1)")
run("too few values", "INSERT INTO failing (id, a) VALUES (NULL)")
run("null", "INSERT INTO failing (a) VALUES (NULL)")
run("too long", "INSERT INTO failing (a) VALUES (REPEAT('x', 50))")
run("select error", "INSERT INTO failing (a) SELECT nothing FROM orders")

# Many rows: PyMySQL and mysqlclient make few statements of them.
try:
    cur.executemany("INSERT INTO batches (a, b) VALUES (%s, %s)", [(i, "row %d" % i) for i in range(2000)])
    say("many", *shown())
except module.Error as e:
    say("many", type(e).__name__, e.args)
run("many, counted", "SELECT COUNT(*), MIN(id), MAX(id), SUM(a), SUM(id = a + 1) FROM batches")

# Transactions.
db.autocommit(False) if driver != "connector" else setattr(db, "autocommit", False)
run("in transaction", "INSERT INTO held (a) VALUES (1), (2)")
db.rollback()
run("rolled back", "SELECT * FROM held")
run("in transaction", "INSERT INTO held (a) VALUES (3)")
run("select in transaction", "INSERT INTO nested2 (a) SELECT a FROM held")
db.commit()
run("committed", "SELECT a FROM held ORDER BY id")
db.autocommit(True) if driver != "connector" else setattr(db, "autocommit", True)

# LOAD DATA LOCAL.
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "words")
    with open(path, "w") as f:
        f.write("".join("word %d\t%d\n" % (i, i) for i in range(300)))
    load = "LOAD DATA LOCAL INFILE %s INTO TABLE words (word, n)"
    run("load", load, (path,))
    run("load, warnings", "SHOW COUNT(*) WARNINGS")
    run("loaded", "SELECT COUNT(*), MIN(id), MAX(id), SUM(n) FROM words")
    run("after load", "SELECT 1")

# Types, by text and prepared.
values = (-7, 2**64 - 1, 1.5e-3, decimal.Decimal("-12345.678900"), "ü漢😀", bytes(range(200)),
          datetime.datetime(2026, 12, 31, 1, 2, 3, 456789), datetime.date(1999, 1, 2))
typed = "INSERT INTO typed (i, u, f, d, s, b, t, y) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
run("types", typed, values)
run("nulls", typed, (None,) * 8)
if driver == "connector":
    prepared = db.cursor(prepared=True)
    for row in (values, (None,) * 8, values, ("8",) + values[1:], values[:4] + (None,) + values[5:]):
        prepared.execute(typed, row)
        say("prepared", prepared.rowcount, prepared.lastrowid)
    prepared.execute("SELECT * FROM typed WHERE id > %s ORDER BY id", (0,))
    say("prepared rows", prepared.fetchall())
    prepared.close()
    db.cmd_reset_connection()
    run("after reset", "INSERT INTO keyed (a) VALUES (5)")
    run("after reset", "SELECT DATABASE(), LAST_INSERT_ID()")
    db.cmd_change_user(where["user"], where["password"], where["database"])
    run("after change_user", "INSERT INTO keyed (a) VALUES (6)")
run("typed rows", "SELECT * FROM typed ORDER BY id")

# Large values. The second makes a text that keys push over the length of one packet, the third is longer than that.
for piece, size in ((b"\xfe\xff\\'", 1 << 20), (b"\xfe\xffab", (1 << 24) - 72), (b"\xfe\xffab", (17 << 20) + 4)):
    given = piece * (size // 4)
    try:
        cur.execute("INSERT INTO files (name, body) VALUES (%s, %s)", ("f%d" % size, given))
        say("file", size, cur.rowcount, cur.lastrowid)
        cur.execute("SELECT LENGTH(body), SHA2(body, 256), body FROM files WHERE id = %s", (cur.lastrowid,))
        length, sha, body = cur.fetchone()
        cur.fetchall()
        say("file back", length, sha, body == given)
    except module.Error as e:
        say("file", size, type(e).__name__, e.args)

# Several statements.
if driver == "pymysql":
    def several(label, sql):
        try:
            cur.execute(sql)
            while True:
                say(label, *shown())
                if not cur.nextset():
                    break
        except module.Error as e:
            say(label, type(e).__name__, e.args)
    several("several", "INSERT INTO parts (a) VALUES ('1'), ('2'); SELECT a FROM parts ORDER BY id; INSERT INTO parts (a) VALUES ('3'); "
            "SELECT LAST_INSERT_ID(); UPDATE parts SET a = 'x' WHERE a = '1'; INSERT INTO nested (a) SELECT 1 UNION SELECT 2;")
    several("several, error", "INSERT INTO parts (a) VALUES ('4'); INSERT INTO failing (a) VALUES (NULL); INSERT INTO parts (a) VALUES ('5')")
    several("several, syntax", "INSERT INTO parts (a) VALUES ('6'); bad; INSERT INTO parts (a) VALUES ('7')")
    several("parts", "SELECT id, a FROM parts ORDER BY id")
    run("load, no file", "LOAD DATA LOCAL INFILE '/nowhere/at/all' INTO TABLE words (word)")
    run("ping", "SELECT 1")
    db.ping()
    db.select_db(where["database"])
    run("after select_db", "INSERT INTO keyed (a) VALUES (5)")
    other = module.connect(**where)
    other.cursor().execute("KILL %d" % db.thread_id())
    other.close()
    run("killed", "SELECT 1")
else:
    db.close()
say("end")
