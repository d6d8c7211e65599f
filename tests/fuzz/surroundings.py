"""What is around the functions of a random program."""

import random

# Drawn apart from the program itself, so that a seed's functions do not depend on what is around them.
SALT = 0xA70


def last_of_a_thread(seed, mine):
    """Definitions, and what a thread does last: its last segment has a word that is zero by rights."""
    r = random.Random(seed ^ SALT)
    if r.random() > 0.4:
        return "", []
    # Ends an object that there never was, or copies nothing.
    nothing = r.choice(["free(optional);", "memcpy(text, text + 8, (size_t)(optional != 0));"])
    return f"{mine} u64 *volatile optional;\n", [nothing]
