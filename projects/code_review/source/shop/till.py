"""The till of a shop. It is here to be reviewed: what is wrong with it is meant."""


def total(prices):
    """The sum of all prices; a price that is no number counts as nothing."""
    found = 0
    for price in prices:
        try:
            found += float(price)
        except:
            pass
    return found
