"""Tables of results in libraries of data frames, and as HTML in notebooks."""

import csv
import html as markup
import io
import shlex

# Rows that a notebook shows.
SHOWN = 20


def arrow(table):
    """A table as a pyarrow.Table."""
    import pyarrow

    return pyarrow.table(table)


def pandas(table):
    """A table as a pandas.DataFrame, whose names are categories."""
    return arrow(table).to_pandas()


def polars(table):
    """A table as a polars.DataFrame."""
    import polars

    return polars.DataFrame(table)


def html(table):
    """The first rows of a table. Columns that are empty in all of them are left out."""
    names, *rows = csv.reader(io.StringIO(table.csv(), newline=""))
    shown = [[short(field) for field in row] for row in rows[:SHOWN]]
    kept = [at for at in range(len(names)) if not shown or any(row[at] for row in shown)]
    cells = lambda kind, row: "".join(f"<{kind}>{markup.escape(row[at])}</{kind}>" for at in kept)
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in shown)
    left = f"{len(rows):,} rows" if len(rows) <= SHOWN else f"{SHOWN} of {len(rows):,} rows"
    head = f"<thead><tr>{cells('th', names)}</tr></thead>"
    return f"<table>{head}<tbody>{body}</tbody></table><p>{markup.escape(table.name)}: {left}</p>"


def short(field):
    """A fraction with a few digits; anything else as it is."""
    try:
        return f"{float(field):.4g}" if "." in field else field
    except ValueError:
        return field


def trace_html(trace):
    """What was recorded, and what can be asked."""
    notes = "".join(f"<li>{markup.escape(note)}</li>" for note in trace.notes)
    return (
        f"<p>Trace <code>{markup.escape(str(trace.path))}</code> of "
        f"<code>{markup.escape(shlex.join(trace.command))}</code></p><ul>{notes}</ul>"
        f"<p>Tables: {', '.join(f'<code>{name}</code>' for name in trace.tables)}</p>"
    )
