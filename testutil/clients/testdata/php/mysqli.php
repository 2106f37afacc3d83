<?php
// What PHP's mysqli sees. Each line is a label and what came back.
mysqli_report(MYSQLI_REPORT_OFF);
[$host, $port, $user, $password, $name] = array_map('getenv', ['DB_HOST', 'DB_PORT', 'DB_USER', 'DB_PASSWORD', 'DB_NAME']);
$db = mysqli_init();
$db->options(MYSQLI_OPT_LOCAL_INFILE, true);
$flags = in_array('compressed', $argv) ? MYSQLI_CLIENT_COMPRESS : 0;
if (!@$db->real_connect($host, $user, $password, $name, (int) $port, null, $flags)) {
    echo "connect: $db->connect_errno $db->connect_error\n";
    exit(1);
}
$db->set_charset('utf8mb4');

function say($label, ...$what)
{
    echo $label, ': ', implode(' ', array_map(fn ($w) => is_string($w) ? $w : json_encode($w), $what)), "\n";
}

// What mysqli knows of the last answer.
function known($db)
{
    return ['affected', $db->affected_rows, 'id', $db->insert_id, 'info', $db->info, 'warnings', $db->warning_count];
}

function run($label, $sql)
{
    global $db;
    $result = $db->query($sql);
    if ($result === false) {
        say($label, $db->errno, $db->sqlstate, $db->error);
    } elseif ($result === true) {
        say($label, ...known($db));
    } else {
        $fields = array_map(fn ($f) => [$f->name, $f->orgname, $f->orgtable, $f->type, $f->flags & ~(512 | 4096), $f->length, $f->charsetnr], $result->fetch_fields());
        say($label, $fields, $result->fetch_all());
    }
}

run('text', "INSERT INTO orders (customer) VALUES ('ann')");
run('last', 'SELECT LAST_INSERT_ID(), ROW_COUNT()');
run('quotes', "INSERT INTO orders (customer) VALUES ('" . $db->real_escape_string("it's \\ \"x\" `y` -- ; \n \0 ü") . "')");
run('three', "INSERT INTO orders (customer) VALUES ('a'), ('b'), ('c')");
run('null and zero', "INSERT INTO orders (id, customer) VALUES (NULL, 'n'), (0, 'z'), (DEFAULT, 'd')");
run('brought key', "INSERT INTO orders (id, customer) VALUES (1000, 'k')");
run('after', "INSERT INTO orders (customer) VALUES ('after')");
run('last', 'SELECT LAST_INSERT_ID(), ROW_COUNT()');
$upsert = "INSERT INTO items (sku, stock) VALUES ('tea', %d) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), stock = VALUES(stock)";
run('upsert, new', sprintf($upsert, 1));
run('upsert, changed', sprintf($upsert, 2));
run('upsert, same', sprintf($upsert, 2));
run('ignore, new', "INSERT IGNORE INTO ignored (sku) VALUES ('a')");
run('ignore, known', "INSERT IGNORE INTO ignored (sku) VALUES ('a')");
for ($more = $warning = $db->get_warnings(); $more; $more = $warning->next()) {
    say('warning', $warning->errno, $warning->sqlstate, $warning->message);
}
run('replace', "REPLACE INTO ignored (sku, stock) VALUES ('a', 9)");
run('select', 'INSERT INTO copies (customer, total) SELECT customer, total FROM orders ORDER BY id');
run('select, none', 'INSERT INTO none (customer) SELECT customer FROM orders WHERE 1 = 0');
run('copies', 'SELECT * FROM copies ORDER BY id');

run('duplicate', "INSERT INTO items (sku) VALUES ('tea')");
run('syntax', 'INSERT INTO orders (customer) VALUES (');
run('no table', 'INSERT INTO nowhere (a) VALUES (1)');
run('no column', 'INSERT INTO failing (nothing) VALUES (1)');
run('null', 'INSERT INTO failing (a) VALUES (NULL)');

// Prepared, with types that change from one execution to the next.
$typed = $db->prepare('INSERT INTO typed (i, u, f, d, s, b, t, y) VALUES (?, ?, ?, ?, ?, ?, ?, ?)');
say('prepared', $typed->param_count, $typed->field_count);
foreach ([['i', -7], ['s', '8'], ['d', 9.4], ['i', null], ['s', null]] as [$type, $first]) {
    $rest = ['18446744073709551615', 1.5e-3, '-12345.678900', 'ü漢', "\0\x01\xfe\xff\\'", '2026-12-31 01:02:03.456789', '1999-01-02'];
    $typed->bind_param($type . 'sdsssss', $first, ...$rest);
    $ok = $typed->execute();
    say('executed', $ok, $typed->affected_rows, $typed->insert_id, $typed->errno, $typed->error, $db->insert_id);
}
for ($null = 0; $null < 8; $null++) {
    $row = ['1', '2', '3.5', '4', '5', '6', '2026-01-01', '2026-01-01'];
    $row[$null] = null;
    $typed->execute($row);
    say('executed', $null, $typed->affected_rows, $typed->insert_id, $typed->error);
}
$typed->close();
$select = $db->prepare('SELECT * FROM typed WHERE id >= ? ORDER BY id');
$from = 1;
$select->bind_param('i', $from);
$select->attr_set(MYSQLI_STMT_ATTR_CURSOR_TYPE, MYSQLI_CURSOR_TYPE_READ_ONLY);
$select->attr_set(MYSQLI_STMT_ATTR_PREFETCH_ROWS, 2);
$select->execute();
$row = array_fill(0, 9, null);
$select->bind_result(...$row);
while ($select->fetch()) {
    say('typed', array_map(fn ($v) => is_string($v) ? bin2hex($v) : $v, $row));
}
$select->close();
$key = $db->prepare('INSERT INTO keyed (id, a) VALUES (?, ?)');
foreach ([null, 500, 0, null, '700', null] as $id) {
    $key->execute([$id, 1]);
    say('key', $id, $key->insert_id, $key->affected_rows, $key->error);
}
$bad = $db->prepare('INSERT INTO failing (nothing) VALUES (?)');
say('prepare, error', $bad, $db->errno, $db->error);
$duplicate = $db->prepare('INSERT INTO items (sku) VALUES (?)');
say('execute, error', $duplicate->execute(['tea']), $duplicate->errno, $duplicate->sqlstate, $duplicate->error);
say('and then', $duplicate->execute(['cup']), $duplicate->insert_id);
$many = [];
for ($i = 0; $i < 100; $i++) {
    $many[] = $db->prepare("INSERT INTO batches (a, b) VALUES (?, 'statement $i')");
}
foreach ($many as $i => $s) {
    $s->execute([$i]);
}
say('100 statements', $s->insert_id);
unset($many, $s);

// Long data, in pieces.
$file = $db->prepare('INSERT INTO files (name, body) VALUES (?, ?)');
$label = 'long';
$body = null;
$file->bind_param('sb', $label, $body);
for ($i = 0; $i < 64; $i++) {
    $file->send_long_data(1, str_repeat(chr($i) . "\xff\\'", 16 << 10));
}
say('long data', $file->execute(), $file->insert_id, $file->error);
$file->reset();
say('after reset', $file->execute(), $file->insert_id, $file->error);
run('files', 'SELECT id, name, LENGTH(body), SHA2(body, 256) FROM files ORDER BY id');
foreach ([(1 << 24) - 70, 17 << 20] as $size) {
    run('file', "INSERT INTO files (name, body) VALUES ('big', '" . str_repeat('x', $size) . "')");
    $back = $db->query('SELECT body FROM files WHERE id = ' . $db->insert_id)->fetch_row()[0];
    say('file back', strlen($back), sha1($back));
    unset($back);
}

// Several statements.
function several($label, $sql)
{
    global $db;
    if (!$db->multi_query($sql)) {
        say($label, $db->errno, $db->error);
        return;
    }
    do {
        $result = $db->store_result();
        say($label, ...($result ? [$result->fetch_all()] : known($db)));
    } while ($db->more_results() && $db->next_result());
    say($label, 'ended', $db->errno, $db->error);
}
several('several', "INSERT INTO parts (a) VALUES ('1'), ('2'); SELECT a FROM parts ORDER BY id; INSERT INTO parts (a) VALUES ('3');
    SELECT LAST_INSERT_ID(); UPDATE parts SET a = 'x' WHERE a = '1'; INSERT INTO nested (a) SELECT 1 UNION SELECT 2");
several('several, error', "INSERT INTO parts (a) VALUES ('4'); INSERT INTO failing (a) VALUES (NULL); INSERT INTO parts (a) VALUES ('5')");
several('several, syntax', "bad; INSERT INTO parts (a) VALUES ('6')");
run('not several', "INSERT INTO failing (a) SELECT a FROM parts; DROP TABLE held -- '");
run('not several', "INSERT INTO failing (a) VALUES ('x'); DROP TABLE held -- '");
run('held is there', 'SELECT COUNT(*) FROM held');
run('parts', 'SELECT * FROM parts ORDER BY id');

// Transactions.
$db->autocommit(false);
run('in transaction', 'INSERT INTO held (a) VALUES (1), (2)');
run('in transaction', 'INSERT INTO nested2 (a) SELECT a FROM held');
$db->rollback();
run('rolled back', 'SELECT COUNT(*) FROM held');
$db->begin_transaction();
run('in transaction', 'INSERT INTO held (a) VALUES (3)');
$db->savepoint('s');
run('in transaction', 'INSERT INTO held (a) VALUES (4)');
$db->query('ROLLBACK TO SAVEPOINT s');
$db->commit();
$db->autocommit(true);
run('committed', 'SELECT a FROM held');

// LOAD DATA LOCAL.
$path = tempnam(sys_get_temp_dir(), 'words');
file_put_contents($path, implode('', array_map(fn ($i) => "word $i\t$i\n", range(0, 299))));
run('load', "LOAD DATA LOCAL INFILE '$path' INTO TABLE words (word, n)");
unlink($path);
run('loaded', 'SELECT COUNT(*), MIN(id), MAX(id), SUM(n) FROM words');
run('load, no file', "LOAD DATA LOCAL INFILE '/nowhere/at/all' INTO TABLE words (word)");

// What changes the session.
run('temporary', 'CREATE TEMPORARY TABLE held (id INT AUTO_INCREMENT PRIMARY KEY, a INT)');
run('temporary', 'INSERT INTO held (a) VALUES (1)');
say('change_user', $db->change_user($user, $password, $name));
run('not temporary', 'INSERT INTO held (a) VALUES (9)');
say('select_db', $db->select_db('no_such_database'), $db->errno);
run('still there', 'INSERT INTO held (a) VALUES (10)');
say('select_db', $db->select_db($name));
run('still there', 'INSERT INTO held (a) VALUES (11)');
say('stat', str_contains($db->stat(), 'Uptime'));
run('mode', "SET sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')");
run('mode', "INSERT INTO parts (a) VALUES ('\\')");
run('unbuffered', 'SELECT 1');
$rows = $db->query('SELECT id FROM orders ORDER BY id', MYSQLI_USE_RESULT);
say('unbuffered', $rows->fetch_row());
$rows->free();
run('after', "INSERT INTO orders (customer) VALUES ('end')");
say('change_user', @$db->change_user($user, 'wrong', $name), $db->errno > 0);
say('end');
