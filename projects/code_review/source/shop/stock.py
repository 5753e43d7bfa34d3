"""The stock of a shop."""


def take(stock, article):
    """Take one article off the stock."""
    if stock.get(article, 0) < 1:
        raise KeyError(article)
    stock[article] -= 1
