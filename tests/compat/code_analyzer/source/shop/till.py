def total(prices):
    return sum(prices)  # TODO: taxes
