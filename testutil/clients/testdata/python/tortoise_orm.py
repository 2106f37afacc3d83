"""What programs on Tortoise see, on asyncmy."""
import asyncio
import os
from urllib.parse import quote

from tortoise import Tortoise, fields
from tortoise.exceptions import IntegrityError
from tortoise.functions import Count, Max, Min
from tortoise.models import Model
from tortoise.transactions import in_transaction


class Order(Model):
    id = fields.BigIntField(primary_key=True)
    customer = fields.CharField(100, null=True)
    total = fields.DecimalField(10, 2, default=1.5)

    class Meta:
        table = "orders"


class Item(Model):
    id = fields.IntField(primary_key=True)
    sku = fields.CharField(20, unique=True)
    stock = fields.IntField(default=0)

    class Meta:
        table = "items"


def say(label, *what):
    print(label + ":", *what, flush=True)


async def main():
    await Tortoise.init(db_url="mysql://%s:%s@%s:%s/%s?maxsize=1" % (os.environ["DB_USER"], quote(os.environ["DB_PASSWORD"]), os.environ["DB_HOST"],
                                                                   os.environ["DB_PORT"], os.environ["DB_NAME"]), modules={"models": ["__main__"]})
    order = await Order.create(customer="it's \\ ü")
    say("create", order.id, order.total)
    saved = Order(customer="saved")
    await saved.save()
    say("save", saved.id)
    await Order.bulk_create([Order(customer="o%d" % i) for i in range(100)], batch_size=30)
    say("bulk create", await Order.all().annotate(n=Count("id"), low=Min("id"), high=Max("id")).values_list("n", "low", "high"))
    say("brought", (await Order.create(id=5000, customer="brought")).id)
    say("after", (await Order.create(customer="after")).id)
    for _ in range(2):
        item, created = await Item.get_or_create(sku="tea", defaults={"stock": 3})
        say("get or create", item.id, item.stock, created)
    item, created = await Item.update_or_create(sku="tea", defaults={"stock": 4})
    say("update or create", item.id, item.stock, created)
    await Item.bulk_create([Item(sku="tea")], ignore_conflicts=True)
    try:
        await Item.create(sku="tea")
    except IntegrityError as e:
        say("duplicate", e)
    try:
        async with in_transaction():
            say("rolled back", (await Order.create(customer="no")).id)
            raise ValueError("no")
    except ValueError as e:
        say("rolled back", e)
    say("items", await Item.all().order_by("id").values_list("sku", "stock"))
    say("orders", await Order.filter(id__gt=100).order_by("id").values_list("id", "customer"))
    await Tortoise.close_connections()
    say("end")


asyncio.run(main())
