"""What a URL of a PostgreSQL store says: where the server is, which schema, and how it is to be reached."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from keepstep.errors import BadInput, CannotOpen, shown

FORM = "postgresql://USER@HOST/DATABASE"
SCHEMES = ("postgresql", "postgres")

SCHEMA = "keepstep"
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
ANSWER_SECONDS = 20.0
"""So long an answer may take: shorter than the usual lease, longer than a server that is busy."""
CONNECT_SECONDS = 5
"""So long one try to connect may take."""
IDLE_MS = 10_000
"""A client that was frozen inside a transaction gives its locks up after that; a transaction takes milliseconds."""

SECRETS = frozenset(("password", "sslpassword"))
OWN = ("schema", "pooler", "timeout")

_KEPT_ALIVE = {"keepalives": "1", "keepalives_idle": "5", "keepalives_interval": "2", "keepalives_count": "3"}
"""A machine that is gone without a word is noticed within about ten seconds."""


class Place(NamedTuple):
    """Where a store is, and how to get there."""

    url: str
    """For messages: without any password."""
    conninfo: str
    schema: str = SCHEMA
    by_pooler: bool = False
    """Each transaction may meet another session of the server, so nothing may be left in one."""
    answer_seconds: float = ANSWER_SECONDS

    def __repr__(self) -> str:
        return f"<Place {self.url}>"


def place_of(url: str) -> Place:
    """Read a URL; raises `CannotOpen` or `BadInput`, without ever showing it: it may hold a password."""
    try:
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise CannotOpen(f"A URL of a PostgreSQL store is not one; write {FORM}.") from None
    names = [name for name, _ in options]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"The option {shown(name)} stands twice in the URL; give it once.")
    own = {name: value for name, value in options if name in OWN}
    rest = {name: value for name, value in options if name not in OWN}
    schema, by_pooler, seconds = _schema(own), _pooler(own), _seconds(own)
    given = _given(url.partition("?")[0], rest)
    conninfo = _conninfo(given, by_pooler=by_pooler, seconds=seconds)
    return Place(_shown(given, own), conninfo, schema, by_pooler, seconds)


def _schema(own: dict[str, str]) -> str:
    schema = own.get("schema", SCHEMA)
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
        raise BadInput(f"schema= is {shown(schema)}; give up to 63 of a-z, 0-9 and _, not beginning with a digit.")
    return schema


def _pooler(own: dict[str, str]) -> bool:
    pooler = own.get("pooler", "none")
    if pooler not in ("none", "session", "transaction"):
        raise BadInput(f"pooler= is {shown(pooler)}; give none, session or transaction.")
    return pooler == "transaction"


def _seconds(own: dict[str, str]) -> float:
    text = own.get("timeout", str(ANSWER_SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3600:
        raise BadInput(f"timeout= is {shown(text)}; give seconds, 0.1 to 3600.")
    return seconds


def _given(url: str, options: dict[str, str]) -> dict[str, str]:
    """What the URL says of the connection, by libpq's names."""
    from psycopg import ProgrammingError, pq
    from psycopg.conninfo import conninfo_to_dict

    known = {one.keyword.decode() for one in pq.Conninfo.get_defaults()}
    for name in options:
        if name not in known:
            raise BadInput(
                f"The URL of a PostgreSQL store has no option {shown(name)}. keepstep's are {', '.join(OWN)}; "
                "the others are libpq's, such as sslmode."
            )
    try:
        given = conninfo_to_dict(f"{url}?{urlencode(options, quote_via=quote)}" if options else url)
    except ProgrammingError:
        raise CannotOpen(f"A URL of a PostgreSQL store is not one; write {FORM}.") from None
    return {name: str(value) for name, value in given.items()}


def _conninfo(given: dict[str, str], *, by_pooler: bool, seconds: float) -> str:
    from psycopg.conninfo import make_conninfo

    usual = {"connect_timeout": str(CONNECT_SECONDS), "application_name": "keepstep", **_KEPT_ALIVE}
    usual["tcp_user_timeout"] = str(round(seconds * 1000))
    settings = {**usual, **given}
    if not by_pooler:  # a pooler knows nothing of these; `begin` says them in every transaction there
        own = f"-c idle_in_transaction_session_timeout={IDLE_MS} -c lock_timeout={round(seconds * 1000)}"
        settings["options"] = f"{own} {given.get('options', '')}".rstrip()
    return make_conninfo("", **settings)


def _shown(given: dict[str, str], own: dict[str, str]) -> str:
    """The URL again, without its secrets."""
    user = f"{quote(given['user'], safe='')}@" if "user" in given else ""
    hosts = given.get("host", "").split(",")
    ports = given.get("port", "").split(",")
    at_folder = any("/" in host for host in hosts)
    authority = "" if at_folder else ",".join(_address(host, port) for host, port in _paired(hosts, ports))
    written = {"user", "dbname", *SECRETS, *(() if at_folder else ("host", "port"))}
    options = {name: value for name, value in given.items() if name not in written} | own
    query = f"?{urlencode(options, quote_via=quote)}" if options else ""
    return f"postgresql://{user}{authority}/{quote(given.get('dbname', ''), safe='')}{query}"


def _paired(hosts: list[str], ports: list[str]) -> list[tuple[str, str]]:
    return [(host, ports[min(place, len(ports) - 1)]) for place, host in enumerate(hosts)]


def _address(host: str, port: str) -> str:
    name = f"[{host}]" if ":" in host else quote(unquote(host), safe="")
    return f"{name}:{port}" if port else name
