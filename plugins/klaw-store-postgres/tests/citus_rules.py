"""What Citus refuses, or answers wrongly without a word: rules about the text of a statement, and about the tables.

They are those of a trial on a cluster of three nodes. A statement on a table with a tenant goes to one worker only if
it names the tenant; ``nextval`` runs on the coordinator; ``INSERT … SELECT`` becomes a COPY, which row-level security
refuses, unless it returns rows or handles conflicts; a setting reaches a worker only as a ``SET LOCAL`` of its own.
"""

import re

_PLACES = re.compile(r'\b(?:FROM|JOIN|INTO|UPDATE|USING|ONLY)\s+(?:ONLY\s+)?"?(\w+)"?', re.IGNORECASE)
_INSERTS = re.compile(r"\bINSERT INTO (\w+)(?: AS \w+)?\s*(.*?)(?=\bINSERT INTO\b|\Z)", re.DOTALL)
_TENANT = re.compile(r"\btenant\)? = (?:%s|'?\d+)|\(tenant, [^)]*\) = |\(\w+\.tenant, [^)]*\) = |\btenant IN ")
_SETS = re.compile(r"\s*SET\s+(?!LOCAL\b)", re.IGNORECASE)
# Connections outside of the pool, which read no table, hold locks of the coordinator; and how it reads what Klaw sends.
_OF_COORDINATOR = re.compile(
    r"\s*SET\s+(?:SESSION\s+)?(?:search_path|lock_timeout|idle_session_timeout"
    r"|client_encoding|standard_conforming_strings|array_nulls|row_security)\b",
    re.IGNORECASE,
)


def faults(sql, tables):
    """Return what Citus would refuse in a statement; ``tables`` are those that have a tenant."""
    found = []
    used = {name for name in _PLACES.findall(sql) if name in tables or re.fullmatch(r"vectors_\d+_\d+", name)}
    if ";" in sql.strip().rstrip(";") and (used or re.search(r"\bSET\b", sql)):
        found.append("several statements in one text")
    if re.search(r"\bCOPY\b", sql):
        found.append("COPY")
    if "set_config(" in sql or (_SETS.match(sql) and not _OF_COORDINATOR.match(sql)):
        found.append("a setting that does not reach the workers")
    if re.search(r"\bDO UPDATE\b[^)]*\b(?:nextval|now|random|clock_timestamp)\(", sql):
        found.append("a volatile function in DO UPDATE")
    inserted = set()
    for name, rest in _INSERTS.findall(sql):
        inserted.add(name)
        if name in used and not rest.startswith("(tenant,"):
            found.append(f"rows of {name} without a tenant")
        copied = "SELECT" in rest and not re.search(r"FROM vectors WHERE tenant = %s", rest)
        if copied and not re.search(r"\b(?:RETURNING|ON CONFLICT)\b", rest):
            found.append(f"INSERT … SELECT into {name}, which becomes a COPY")
    if used - inserted and not _TENANT.search(sql):
        found.append(f"{', '.join(sorted(used - inserted))} without a tenant")
    return found


def beginning_faults(statements):
    """Return what is wrong with the statements that begin a transaction on an agent's rows."""
    texts = [sql for sql in statements if not sql.startswith("SELECT pg_advisory")]
    wanted = ["BEGIN", "SET LOCAL citus.propagate_set_commands = 'local'"]
    at = next((number for number, sql in enumerate(texts) if sql.startswith("SET LOCAL klaw.tenant")), None)
    if at is None:
        return [f"no statement says whose rows a transaction is on: {texts[:4]}"]
    if not texts[0].startswith(wanted[0]) or texts[1] != wanted[1] or at < 2:
        return [f"a transaction does not begin by propagating its settings: {texts[:4]}"]
    opening = "".join(texts[at + 2 : at + 3])
    if not re.match(r"SELECT 1 FROM collections WHERE tenant = \d+ LIMIT 1", opening):
        return [f"no statement opens the snapshot on the worker: {opening}"]
    return []


#: Tables with a tenant that are not distributed; unique indexes, and foreign keys, whose columns lack the tenant.
TABLES = """
SELECT relname::text, 'is on the coordinator only' FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND attname = 'tenant'
AND NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = pg_class.oid)
UNION ALL
SELECT relname::text, 'cannot move while agents write' FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND attname = 'tenant' AND relreplident <> 'f'
AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = pg_class.oid AND indisprimary)
UNION ALL
SELECT indexrelid::regclass::text, 'is unique without the tenant' FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
WHERE relnamespace = current_schema()::regnamespace AND indisunique AND EXISTS (
    SELECT FROM pg_attribute WHERE attrelid = indrelid AND attname = 'tenant' AND attnum <> ALL (indkey))
UNION ALL
SELECT conname::text, 'refers to rows without the tenant' FROM pg_constraint
WHERE connamespace = current_schema()::regnamespace AND contype = 'f' AND NOT EXISTS (
    SELECT FROM pg_attribute WHERE attrelid = conrelid AND attname = 'tenant' AND attnum = ANY (conkey))
"""

#: Citus' functions and catalogue that Klaw uses, for a server without Citus: they only note the calls.
STUB = """
CREATE TABLE public.pg_dist_partition (logicalrelid regclass PRIMARY KEY, partkey text NOT NULL);
GRANT ALL ON public.pg_dist_partition TO PUBLIC;
CREATE FUNCTION public.create_distributed_table(name regclass, by text) RETURNS void LANGUAGE sql AS
    'INSERT INTO public.pg_dist_partition SELECT name, by';
CREATE FUNCTION public.citus_total_relation_size(name regclass) RETURNS bigint LANGUAGE sql AS
    'SELECT pg_total_relation_size(name)';
"""
