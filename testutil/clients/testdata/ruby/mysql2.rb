# What Ruby's mysql2 sees.
require 'mysql2'

DB = Mysql2::Client.new(host: ENV['DB_HOST'], port: ENV['DB_PORT'].to_i, username: ENV['DB_USER'], password: ENV['DB_PASSWORD'],
                        database: ENV['DB_NAME'], flags: Mysql2::Client::MULTI_STATEMENTS, local_infile: true, encoding: 'utf8mb4')

def say(label, *what)
  puts "#{label}: #{what.map(&:inspect).join(' ')}"
end

def run(label)
  r = yield
  say label, DB.affected_rows, DB.last_id, DB.query_info, DB.warning_count, r&.fields, r&.to_a
rescue Mysql2::Error => e
  say label, e.error_number, e.sql_state, e.message
end

def text(label, sql)
  run(label) { DB.query(sql, as: :array) }
end

text 'text', "INSERT INTO orders (customer) VALUES ('ann')"
text 'quotes', "INSERT INTO orders (customer) VALUES ('#{DB.escape("it's \\ \"x\" -- ; \n ü")}')"
text 'three', "INSERT INTO orders (customer) VALUES ('a'), ('b'), ('c')"
text 'brought key', "INSERT INTO orders (id, customer) VALUES (1000, 'k')"
text 'after', "INSERT INTO orders (customer) VALUES ('after')"
text 'last', 'SELECT LAST_INSERT_ID(), ROW_COUNT()'
upsert = "INSERT INTO items (sku, stock) VALUES ('tea', %d) ON DUPLICATE KEY UPDATE stock = VALUES(stock)"
[1, 2, 2].each { |stock| text 'upsert', format(upsert, stock) }
text 'ignore', "INSERT IGNORE INTO ignored (sku) VALUES ('a')"
text 'ignore, known', "INSERT IGNORE INTO ignored (sku) VALUES ('a')"
text 'select', 'INSERT INTO copies (customer, total) SELECT customer, total FROM orders ORDER BY id'
text 'duplicate', "INSERT INTO items (sku) VALUES ('tea')"
text 'syntax', 'INSERT INTO orders (customer) VALUES ('
text 'no table', 'INSERT INTO nowhere (a) VALUES (1)'
statement = DB.prepare('INSERT INTO typed (i, f, d, s, t, y) VALUES (?, ?, ?, ?, ?, ?)')
[[-7, 1.5, '1.25', 'ü漢', Time.utc(2026, 12, 31, 1, 2, 3), nil], ['8', nil, 2, nil, nil, '1999-01-02'], [nil] * 6].each do |row|
  run('prepared') { statement.execute(*row) }
  say 'statement', statement.affected_rows, statement.last_id
end
text 'typed', 'SELECT * FROM typed ORDER BY id'
key = DB.prepare('INSERT INTO keyed (id, a) VALUES (?, 1)')
[nil, 500, 0, '700', nil].each { |id| key.execute(id); say 'key', key.last_id }
run('several') { DB.query("INSERT INTO parts (a) VALUES ('1'), ('2'); SELECT a FROM parts ORDER BY id; INSERT INTO parts (a) VALUES ('3')", as: :array) }
while DB.next_result
  r = DB.store_result
  say 'several', DB.affected_rows, DB.last_id, r&.to_a
end
text 'begin', 'BEGIN'
text 'in transaction', 'INSERT INTO held (a) VALUES (1)'
text 'rollback', 'ROLLBACK'
text 'held', 'SELECT * FROM held'
say 'ping', DB.ping
text 'orders', 'SELECT * FROM orders ORDER BY id'
say 'end'
