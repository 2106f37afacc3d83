<?php
// Writes orders to both shards in turn, and prints how many seconds that took.
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
foreach (explode(',', getenv('SHARDS')) as $shard) {
    $db = new mysqli(getenv('DB_HOST'), getenv('DB_USER'), getenv('DB_PASSWORD'), $shard, (int) getenv('DB_PORT'));
    $connections[] = $db;
    $inserts[] = $db->prepare("INSERT INTO orders (program, total) VALUES ('PHP', ?)");
}
$start = microtime(true);
for ($i = 0; $i < (int) getenv('ROWS'); $i++) {
    $insert = $inserts[$i % 2];
    $insert->execute([$i]);
    if ($insert->insert_id == 0) {
        throw new Exception('an order without an id');
    }
}
echo microtime(true) - $start, "\n";
