<?php
// A writer in PHP; programs_test.go describes what writers do.
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
const ROWS = 20;
[$host, $user, $password, $name, $writer, $next, $left] =
    array_map('getenv', ['DB_HOST', 'DB_USER', 'DB_PASSWORD', 'DB_NAME', 'WRITER', 'NEXT', 'LEFT']);
$ports = explode(',', getenv('DB_PORTS'));

// Reserves the numbers of the next rows: those of a failed statement are not reused.
function take($rows)
{
    global $next;
    $first = (int) $next;
    $next += $rows;
    return $first;
}

function text($rows)
{
    global $db, $writer;
    $first = take($rows);
    $db->query('INSERT INTO orders (writer, n) VALUES ' . implode(', ', array_map(fn ($n) => "($writer, $n)", range($first, $first + $rows - 1))));
    return "$rows $first $db->insert_id\n";
}

function prepared($insert, $rows)
{
    global $writer;
    $first = take($rows);
    for ($n = $first; $n < $first + $rows; $n++) {
        $values[] = $writer;
        $values[] = $n;
    }
    $insert->execute($values);
    return "$rows $first $insert->insert_id\n";
}

for ($turn = $writer, $i = 0; $left > 0; $turn++) {
    try {
        $db = new mysqli($host, $user, $password, $name, (int) $ports[$turn % count($ports)]);
        $one = $db->prepare('INSERT INTO orders (writer, n) VALUES (?, ?)');
        $several = $db->prepare('INSERT INTO orders (writer, n) VALUES (?, ?)' . str_repeat(', (?, ?)', ROWS - 1));
        while ($left > 0) {
            $rows = ROWS;
            switch ($i++ % 8) {
                case 0:
                    $acknowledged = text($rows = 1);
                    break;
                case 1:
                    $acknowledged = prepared($one, $rows = 1);
                    break;
                case 2:
                    $db->begin_transaction();
                    $acknowledged = text(ROWS) . prepared($one, 1);
                    $db->commit();
                    $rows = ROWS + 1;
                    break;
                case 3: case 5: case 7:
                    $acknowledged = prepared($several, ROWS);
                    break;
                default:
                    $acknowledged = text(ROWS);
            }
            echo $acknowledged;
            $left -= $rows;
        }
    } catch (mysqli_sql_exception $e) {
        echo '! ' . $e->getCode() . ' ' . strtr($e->getMessage(), "\n", ' ') . "\n";
        usleep(50_000);
    }
}
