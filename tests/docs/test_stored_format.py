import re
import sqlite3

import keepstep
from keepstep.codec import forms
from keepstep.log.records import KINDS
from keepstep.store.sqlite import schema
from tests.docs.pages import ROOT, table_under

PAGE = ROOT / "docs/explanation/stored-format.md"
TEXT = PAGE.read_text("utf-8")


def test_every_extension_code_is_on_the_page():
    codes = {value for name, value in vars(forms).items() if name.isupper() and isinstance(value, int)}
    codes -= {forms.INT_MIN, forms.INT_MAX}

    assert {int(row[0]) for row in table_under(PAGE, "Values")} == codes


def test_every_kind_that_the_engine_writes_is_named_as_written_and_no_other():
    sentence = re.search(r"This version writes (.+?)\. The others", TEXT, re.DOTALL)
    assert sentence
    engine = "".join(path.read_text("utf-8") for path in (ROOT / "src/keepstep/engine").rglob("*.py"))

    written = {kind for kind, cls in KINDS.items() if re.search(rf"\b{cls.__name__}\(", engine)}

    assert set(re.findall(r"`(\w+)`", sentence[1])) == written


def test_every_column_of_the_sqlite_file_is_on_the_page_and_no_other(tmp_path):
    with keepstep.open(tmp_path / "runs.db") as store:
        store.save("r", {}, workflow="w")
    with sqlite3.connect(tmp_path / "runs.db") as file:
        tables = [name for (name,) in file.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        columns = {f"{table}.{row[1]}" for table in tables for row in file.execute(f"PRAGMA table_info({table})")}
        marks = [
            file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version", "journal_mode")
        ]
    file.close()

    on_page = [name for row in table_under(PAGE, "The SQLite file") for name in re.findall(r"`(\w+\.\w+)`", row[0])]

    assert len(on_page) == len(set(on_page))
    assert set(on_page) == columns
    assert marks == [schema.APPLICATION_ID, schema.FORMAT, "wal"]
    assert f"`{schema.APPLICATION_ID:X}`" in TEXT
    assert f"the user version {schema.FORMAT}" in TEXT


def test_every_purpose_that_digests_are_kept_apart_for_is_on_the_page():
    source = "".join(path.read_text("utf-8") for path in (ROOT / "src/keepstep").rglob("*.py"))
    persons = set(re.findall(r'person=b"([^"]+)"', source))

    assert persons
    assert not [person for person in persons if not re.search(f'[`"]{person}[`"]', TEXT)]
