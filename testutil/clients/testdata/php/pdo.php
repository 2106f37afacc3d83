<?php
// What PHP's PDO sees: pdo.php emulated | prepared | found
$options = [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_EMULATE_PREPARES => $argv[1] != 'prepared',
    PDO::MYSQL_ATTR_LOCAL_INFILE => true, PDO::MYSQL_ATTR_FOUND_ROWS => $argv[1] == 'found'];
$db = new PDO(sprintf('mysql:host=%s;port=%s;dbname=%s;charset=utf8mb4', getenv('DB_HOST'), getenv('DB_PORT'), getenv('DB_NAME')),
    getenv('DB_USER'), getenv('DB_PASSWORD'), $options);

function say($label, ...$what)
{
    echo $label, ': ', implode(' ', array_map(fn ($w) => is_string($w) ? $w : json_encode($w), $what)), "\n";
}

function run($label, $sql, $arguments = [])
{
    global $db;
    try {
        $s = $db->prepare($sql);
        $s->execute($arguments);
        say($label, $s->rowCount(), $db->lastInsertId(), $s->columnCount() ? $s->fetchAll(PDO::FETCH_NUM) : '');
    } catch (PDOException $e) {
        say($label, $e->getMessage(), $e->errorInfo);
    }
}

say('exec', $db->exec("INSERT INTO orders (customer) VALUES ('ann')"), $db->lastInsertId());
run('one', 'INSERT INTO orders (customer) VALUES (?)', ["it's \\ \"x\" `y` -- ; \n ? ü"]);
run('named', 'INSERT INTO orders (customer, total) VALUES (:c, :t), (:c2, 7)', ['c' => 'x', 't' => '1.25', 'c2' => 'y']);
foreach ([null, 1000, 0, '2000', null] as $id) {
    run('key', 'INSERT INTO orders (id, customer) VALUES (?, ?)', [$id, 'k']);
}
$upsert = 'INSERT INTO items (sku, stock) VALUES (?, ?) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), stock = VALUES(stock)';
run('upsert, new', $upsert, ['tea', 1]);
run('upsert, changed', $upsert, ['tea', 2]);
run('upsert, same', $upsert, ['tea', 2]);
run('ignore', "INSERT IGNORE INTO ignored (sku) VALUES ('a'), ('b')");
run('replace', "REPLACE INTO ignored (sku, stock) VALUES ('a', 9)");
run('select', 'INSERT INTO copies (customer, total) SELECT customer, total FROM orders WHERE id < ? ORDER BY id', [1000]);
run('duplicate', 'INSERT INTO items (sku) VALUES (?)', ['tea']);
run('syntax', 'INSERT INTO orders (customer) VALUES (');
run('no table', 'INSERT INTO nowhere (a) VALUES (?)', [1]);
run('file', 'INSERT INTO files (name, body) VALUES (?, ?)', ['f', str_repeat("\xff\0\\'", 1 << 18)]);
run('files', 'SELECT name, LENGTH(body), SHA2(body, 256) FROM files');
$db->beginTransaction();
run('in transaction', 'INSERT INTO held (a) VALUES (?), (?)', [1, 2]);
say('rolled back', $db->rollBack());
$db->beginTransaction();
run('in transaction', 'INSERT INTO held (a) VALUES (?)', [3]);
run('in transaction', 'INSERT INTO nested (a) SELECT a FROM held');
say('committed', $db->inTransaction(), $db->commit());
run('held', 'SELECT a FROM held ORDER BY id');
$path = tempnam(sys_get_temp_dir(), 'words');
file_put_contents($path, "one\t1\ntwo\t2\n");
try {
    say('load', $db->exec("LOAD DATA LOCAL INFILE '$path' INTO TABLE words (word, n)"), $db->lastInsertId());
} catch (PDOException $e) {
    say('load', $e->getMessage());
}
unlink($path);
if ($argv[1] != 'prepared') {
    $s = $db->query("INSERT INTO parts (a) VALUES ('1'); SELECT a FROM parts; INSERT INTO parts (a) VALUES ('2')");
    do {
        say('several', $s->rowCount(), $db->lastInsertId(), $s->columnCount() ? $s->fetchAll(PDO::FETCH_NUM) : '');
    } while ($s->nextRowset());
    $s->closeCursor();
}
$batch = $db->prepare('INSERT INTO batches (a, b) VALUES (?, ?)');
for ($i = 0; $i < 200; $i++) {
    $batch->execute([$i, "row $i"]);
}
run('batch', 'SELECT COUNT(*), MIN(id), MAX(id), SUM(id = a + 1) FROM batches');
run('orders', 'SELECT * FROM orders ORDER BY id');
say('end');
