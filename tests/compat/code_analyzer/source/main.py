from shop.till import total

print(total([3, 4]))
