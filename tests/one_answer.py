"""Holds the answers about a trace against each other: what a report says of edits, and what `memlode advise` found.

The arrow of a finding and the closing line of `memlode run` are made of the report's glance; `advise` replays in full.
"""


def disagreement(report, advice):
    """Why the two do not agree, or None."""
    glance = report.get("glance")
    advised = ["; ".join(item["edits"]) for item in advice["worth_it"]]
    if glance is None:
        return "the report has tried nothing"
    kind = glance["kind"]
    if kind in ("locks", "nothing_waits"):
        return f"the report says {kind}, and advised is {advised[0]}" if advised else None
    if kind == "no_gain":
        denies = glance["is_whole"] and advised
        return f"nothing gains in all of the run, and advised is {advised[0]}" if denies else None
    tried = advised + [item["edit"] for item in advice["rejected"]]
    if kind == "threads":
        return None if glance["edit"] in tried else f"the report names {glance['edit']}, which was not tried"
    first = glance["found"][0]["edit"]
    if glance["is_whole"]:
        agrees = advised[:1] == [first]
    else:
        # Stretches of the run rank edits that gain about as much in another order.
        gains = [item["edit"] for item in advice["rejected"] if item["verdict"] == "worth_it"]
        agrees = first in advised + gains
    return None if agrees else f"the report names {first}, and advised is {advised[:1] or 'nothing'}"
