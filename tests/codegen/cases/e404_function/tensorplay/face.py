"""A function as tensorplay/ has them, for an entry that misspells it."""


def pairs(input):
    return input
