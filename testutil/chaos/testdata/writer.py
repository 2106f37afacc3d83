"""A writer in Python; programs_test.go describes what writers do."""
import itertools
import os
import time

import pymysql

ROWS = 20
env = os.environ
writer, following, left = (int(env[name]) for name in ("WRITER", "NEXT", "LEFT"))
ports = env["DB_PORTS"].split(",")


def insert(cursor, rows):
    """Inserts the next rows. A failed statement's numbers are not used again."""
    global following
    first = following
    following += rows
    statement = "INSERT INTO orders (writer, n) VALUES (%s, %s)"
    if rows == 1:
        cursor.execute(statement, (writer, first))
    else:  # PyMySQL makes one statement of them
        cursor.executemany(statement, [(writer, n) for n in range(first, following)])
    return f"{rows} {first} {cursor.lastrowid}\n"


def write():
    """Writes on one connection as long as it holds."""
    global left
    cursor = db.cursor()
    for i in itertools.count():
        if left <= 0:
            return
        if i % 8 == 2:
            db.begin()
            rows, acknowledged = ROWS + 1, insert(cursor, ROWS) + insert(cursor, 1)
            db.commit()
        else:
            rows = 1 if i % 8 < 2 else ROWS
            acknowledged = insert(cursor, rows)
        print(acknowledged, end="", flush=True)
        left -= rows


turn = writer
while left > 0:
    try:
        db = pymysql.connect(host=env["DB_HOST"], port=int(ports[turn % len(ports)]), user=env["DB_USER"],
                             password=env["DB_PASSWORD"], database=env["DB_NAME"], autocommit=True)
        write()
    except pymysql.Error as e:
        print("!", *(e.args if isinstance(e.args[0], int) else (0, e)), flush=True)
        turn += 1
        time.sleep(0.05)
