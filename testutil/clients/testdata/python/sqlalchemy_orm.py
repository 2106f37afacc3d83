"""What programs on SQLAlchemy see: sqlalchemy_orm.py mysql+pymysql | mysql+mysqlconnector"""
import os
import sys

from sqlalchemy import LargeBinary, Numeric, String, URL, create_engine, func, insert, select
from sqlalchemy.dialects.mysql import insert as upsert
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[str] = mapped_column(String(100))
    total = mapped_column(Numeric(10, 2))


class Item(Base):
    __tablename__ = "items"
    id: Mapped[int] = mapped_column(primary_key=True)
    sku: Mapped[str] = mapped_column(String(20))
    stock: Mapped[int]


class Copy(Base):
    __tablename__ = "copies"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[str] = mapped_column(String(100))


class File(Base):
    __tablename__ = "files"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(100))
    body = mapped_column(LargeBinary)


engine = create_engine(URL.create(sys.argv[1], os.environ["DB_USER"], os.environ["DB_PASSWORD"], os.environ["DB_HOST"],
                                  int(os.environ["DB_PORT"]), os.environ["DB_NAME"]), pool_pre_ping=True, pool_size=1)


def say(label, *what):
    print(label + ":", *what, flush=True)


say("is mariadb", engine.dialect.name)
with Session(engine) as s:
    one = Order(customer="one")
    s.add(one)
    s.flush()
    say("one", one.id, one.total)
    several = [Order(customer="c%d" % i, total=i) for i in range(500)]
    s.add_all(several)
    s.flush()
    say("500", [o.id for o in several] == list(range(several[0].id, several[0].id + 500)), several[0].id)
    brought = Order(id=5000, customer="brought")
    s.add(brought)
    s.flush()
    say("brought", brought.id)
    s.commit()
    after = Order(customer="after")
    s.add(after)
    s.flush()
    say("after", after.id)
    s.rollback()
    say("rolled back", s.scalar(select(func.count()).select_from(Order)))
with engine.begin() as c:
    r = c.execute(insert(Item), {"sku": "tea", "stock": 1})
    say("core", r.inserted_primary_key, r.rowcount, r.lastrowid)
    r = c.execute(insert(Item), [{"sku": "s%d" % i, "stock": i} for i in range(100)])
    say("core, many", r.rowcount)
    statement = upsert(Item).values(sku="tea", stock=3)
    r = c.execute(statement.on_duplicate_key_update(stock=statement.inserted.stock))
    say("upsert", r.rowcount, r.lastrowid)
    r = c.execute(insert(Copy).from_select(["customer"], select(Order.customer).order_by(Order.id).limit(7)))
    say("from select", r.rowcount)
    say("copies", c.execute(select(Copy.id, Copy.customer).order_by(Copy.id)).all())
    r = c.execute(insert(File), {"name": "f", "body": bytes(range(256)) * 4096})
    say("file", r.inserted_primary_key, c.scalar(select(func.sha2(File.body, 256))))
try:
    with engine.begin() as c:
        c.execute(insert(Item), {"sku": "tea", "stock": 1})
except SQLAlchemyError as e:
    say("duplicate", type(e).__name__, e.orig.args)
say("orders", engine.connect().execute(select(func.count(), func.min(Order.id), func.max(Order.id))).all())
say("end")
