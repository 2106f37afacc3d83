# The suite that SQLAlchemy has for dialects.
from sqlalchemy.testing.suite import *
