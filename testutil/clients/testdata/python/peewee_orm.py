"""What programs on Peewee see, whose keys are AutoField."""
import os

from peewee import AutoField, BigAutoField, CharField, DecimalField, IntegerField, IntegrityError, Model, MySQLDatabase, fn

db = MySQLDatabase(os.environ["DB_NAME"], host=os.environ["DB_HOST"], port=int(os.environ["DB_PORT"]), user=os.environ["DB_USER"],
                   password=os.environ["DB_PASSWORD"])


class Order(Model):
    id = BigAutoField()
    customer = CharField(null=True)
    total = DecimalField(10, 2, default=1.5)

    class Meta:
        database, table_name = db, "orders"


class Item(Model):
    id = AutoField()
    sku = CharField(unique=True)
    stock = IntegerField(default=0)

    class Meta:
        database, table_name = db, "items"


class Part(Model):
    id = BigAutoField()
    a = CharField()

    class Meta:
        database, table_name = db, "parts"


def say(label, *what):
    print(label + ":", *what, flush=True)


order = Order.create(customer="it's \\ ü")
say("create", order.id, order.total)
saved = Order(customer="saved")
say("save", saved.save(), saved.id)
say("insert", Order.insert(customer="insert").execute())
say("insert many", Order.insert_many([{"customer": "o%d" % i} for i in range(100)]).execute())
orders = [Order(customer="b%d" % i) for i in range(10)]
with db.atomic():
    Order.bulk_create(orders, batch_size=5)
say("bulk create", Order.select(fn.COUNT(Order.id), fn.MIN(Order.id), fn.MAX(Order.id)).scalar(as_tuple=True))
say("brought", Order.create(id=5000, customer="brought").id)
say("force insert", Order.create(customer="after").id)
for stock in (1, 2):
    Item.insert(sku="tea", stock=stock).on_conflict(preserve=[Item.stock]).execute()
say("upsert", Item.get(Item.sku == "tea").stock)
say("ignore", Item.insert(sku="tea").on_conflict_ignore().as_rowcount().execute())
say("replace", Item.replace(sku="tea", stock=9).as_rowcount().execute())
item, created = Item.get_or_create(sku="pot", defaults={"stock": 3})
say("get or create", item.sku, item.stock, created)
try:
    Item.create(sku="tea")
except IntegrityError as e:
    say("duplicate", e.args[0])
try:
    with db.atomic():
        say("rolled back", Part.create(a="no").id)
        with db.atomic():
            Part.create(a="savepoint")
        raise ValueError("no")
except ValueError as e:
    say("rolled back", e)
say("insert select", Part.insert_from(Order.select(Order.customer).where(Order.id < 4), [Part.a]).as_rowcount().execute())
say("parts", list(Part.select(Part.a).order_by(Part.id).tuples()))
say("orders", list(Order.select(Order.id, Order.customer).where(Order.id > 110).order_by(Order.id).tuples()))
db.close()
say("end")
