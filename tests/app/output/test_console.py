import io

from rich.console import Console

from tidings.app.output.console import make_table, open_console


def test_rows_are_not_wrapped_in_a_pipe(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    assert open_console().width == 1000
    assert open_console(stderr=True).stderr


def test_columns_of_numbers_are_right_aligned():
    table = make_table("Name", "Count>")
    table.add_row("ann", "7")
    page = io.StringIO()
    Console(file=page, width=40).print(table)
    header, _, row = [line.rstrip() for line in page.getvalue().splitlines() if line.strip()]
    assert header.split() == ["Name", "Count"]
    assert row.split() == ["ann", "7"]
    assert header.endswith("Count")
    assert len(row) == len(header)
