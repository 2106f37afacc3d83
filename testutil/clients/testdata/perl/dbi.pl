# What Perl's DBI sees: dbi.pl MariaDB | mysql [prepared]
use strict;
use warnings;
use DBI;

my ($driver, $prepared) = @ARGV;
my $db = DBI->connect("dbi:$driver:host=$ENV{DB_HOST};port=$ENV{DB_PORT};database=$ENV{DB_NAME}", $ENV{DB_USER}, $ENV{DB_PASSWORD},
    { RaiseError => 1, PrintError => 0, lc($driver) . '_server_prepare' => $prepared ? 1 : 0 });
binmode STDOUT, ':utf8';

sub say_all { print shift, ': ', join(' ', map { defined $_ ? $_ : 'undef' } map { ref $_ ? map { ref $_ ? '(' . join(',', map { defined $_ ? $_ : 'undef' } @$_) . ')' : $_ } @$_ : $_ } @_), "\n" }

sub run {
    my ($label, $sql, @arguments) = @_;
    my $s = eval { my $s = $db->prepare($sql); $s->execute(@arguments); $s } or return say_all($label, $db->err, $db->state, $db->errstr);
    say_all($label, $s->rows, $s->last_insert_id, $s->{NUM_OF_FIELDS} ? $s->fetchall_arrayref : '');
}

run('text', "INSERT INTO orders (customer) VALUES ('ann')");
run('quotes', 'INSERT INTO orders (customer) VALUES (?)', "it's \\ \"x\" -- ; \n ?");
run('three', "INSERT INTO orders (customer, total) VALUES ('a', ?), ('b', 2), ('c', 3)", '1.25');
run('key', 'INSERT INTO keyed (id, a) VALUES (?, 1)', $_) for undef, 500, 0, '700', undef;
run('last', 'SELECT LAST_INSERT_ID()');
my $upsert = 'INSERT INTO items (sku, stock) VALUES (?, ?) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), stock = VALUES(stock)';
run('upsert', $upsert, 'tea', $_) for 1, 2, 2;
run('ignore', 'INSERT IGNORE INTO ignored (sku) VALUES (?)', 'a') for 1, 2;
run('replace', 'REPLACE INTO ignored (sku, stock) VALUES (?, ?)', 'a', 9);
run('select', 'INSERT INTO copies (customer, total) SELECT customer, total FROM orders WHERE id < ? ORDER BY id', 100);
run('duplicate', 'INSERT INTO items (sku) VALUES (?)', 'tea');
run('syntax', 'INSERT INTO orders (customer) VALUES (');
run('no table', 'INSERT INTO nowhere (a) VALUES (?)', 1);
my $batch = $db->prepare('INSERT INTO batches (a, b) VALUES (?, ?)');
say_all('array', scalar $batch->execute_array({ ArrayTupleStatus => \my @status }, [1 .. 50], [map { "row $_" } 1 .. 50]));
run('batches', 'SELECT COUNT(*), MIN(id), MAX(id), SUM(id = a) FROM batches');
$db->begin_work;
run('in transaction', 'INSERT INTO held (a) VALUES (?), (?)', 1, 2);
$db->rollback;
$db->begin_work;
run('in transaction', 'INSERT INTO held (a) VALUES (?)', 3);
$db->commit;
run('held', 'SELECT a FROM held ORDER BY id');
run('keyed', 'SELECT * FROM keyed ORDER BY id');
run('orders', 'SELECT * FROM orders ORDER BY id');
$db->disconnect;
say_all('end', '');
