"""Markdown tables."""


def markdown(rows):
    """The first row is the header. All columns but the first are right-aligned numbers."""
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [str(cell).ljust(width) if column == 0 else str(cell).rjust(width)
                 for column, (cell, width) in enumerate(zip(row, widths))]
        lines.append("| " + " | ".join(cells) + " |")
    lines.insert(1, "|" + "|".join("-" * (width + 2) if column == 0 else "-" * (width + 1) + ":"
                                   for column, width in enumerate(widths)) + "|")
    return "\n".join(lines) + "\n"
