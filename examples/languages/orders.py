"""Writes orders to both shards in turn, and prints how many seconds that took."""
import os
import time

import pymysql

connections = [
    pymysql.connect(host=os.environ["DB_HOST"], port=int(os.environ["DB_PORT"]), user=os.environ["DB_USER"],
                    password=os.environ["DB_PASSWORD"], database=shard, autocommit=True)
    for shard in os.environ["SHARDS"].split(",")
]
cursors = [c.cursor() for c in connections]
start = time.time()
for i in range(int(os.environ["ROWS"])):
    cursor = cursors[i % 2]
    cursor.execute("INSERT INTO orders (program, total) VALUES ('Python', %s)", (i,))
    assert cursor.lastrowid, "an order without an id"
print(time.time() - start)
