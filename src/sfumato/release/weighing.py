"""SQL about people, turned into SQL about cells: each aggregate over `release` weighs cells by their estimates.

It works on the syntax tree that DuckDB writes as JSON, and knows of it only what it must: where queries, relations,
columns and functions are. New nodes are not built but parsed by the same DuckDB from templates, so that the tree may
change from one version to the next. Whatever is not known to be right is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from sfumato.errors import QueryError

Node = dict[str, Any]
"""A node of the syntax tree."""

RELEASE = "release"
"""The relation that questions read."""
WEIGHT = "estimated people of a cell"
"""Its column of estimates, which questions cannot name."""
TEMPLATES = {
    "count_star": "coalesce(sum(weight), 0)",
    "count": "coalesce(sum(case when argument is not null then weight end), 0)",
    "count_if": "coalesce(sum(case when argument then weight end), 0)",
    "sum": "sum(cast(argument as double) * weight)",
    "avg": "sum(cast(argument as double) * weight)"
    " / nullif(greatest(sum(case when argument is not null then weight end), 0), 0)",
}
"""How each aggregate is written over weighted cells. An average is null where estimates say that there is nobody."""
COUNTED = {"count_star": "true", "count": "argument is not null", "count_if": "argument"}
"""Which cells a count counts."""
SYNONYMS = {"countif": "count_if", "mean": "avg"}
"""Other names of aggregates."""
CLOCKS = frozenset({"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"})
"""Functions that SQL calls without brackets, so that they look like columns."""
GROWING = {
    *("range", "generate_series", "repeat", "lpad", "rpad", "list_resize", "array_resize"),
    *("format", "printf", "bar"),
}
"""Functions that make a value of any size out of a number."""
QUERIES = {"SELECT_NODE", "SET_OPERATION_NODE", "CTE_NODE"}
"""The types of queries that are allowed."""
RELATIONS = {"BASE_TABLE", "SUBQUERY", "JOIN", "EMPTY", "EXPRESSION_LIST"}
"""The types of relations that are allowed."""


@dataclass(frozen=True)
class Weighing:
    """How the aggregates of a question become sums over weighted cells."""

    aggregates: Set[str]
    """the functions that aggregate"""
    columns: Set[str]
    """all columns of the release, in lower case"""
    parse: Callable[[str], Node] = field(repr=False)
    """DuckDB's way to parse an expression"""

    def __post_init__(self) -> None:
        """Make sure that aggregates are recognized, or else cells would be counted as if they were people."""
        for name in ("count", "sum", "avg"):
            function = self.parse(f"{name}(x)")
            if not (self._is_aggregate(function) and _arguments(function)[0]["column_names"] == ["x"]):
                raise KeyError(name)

    def weigh(self, tree: Node) -> Node:
        """Make every select from the release weigh its cells; refuse what cannot be weighed."""
        for query in filter(is_query, everything(tree)):
            if any(is_release(node) for node in within(query)):
                self._refuse_unweighable(query)
        weighed: Node = self._weighed(tree, False)
        return weighed

    def selects_release(self, query: Node) -> bool:
        """Tell whether a select reads the release itself, and no other query."""
        return is_release(query.get("from_table") or {})

    def counts(self, function: Node) -> str | None:
        """Tell which kind of count an expression is, all of it; None if it is none."""
        kind = _canonical(function) if self._is_aggregate(function) else ""
        return kind if kind in COUNTED else None

    def counted(self, function: Node, leaf: str | None) -> Node:
        """Write, for a count, how many cells it counts or, of a column, which different values they have."""
        condition = COUNTED[_canonical(function)]
        template = (
            f"count(case when {condition} then 1 end)"
            if leaf is None
            else (f"list(distinct case when {condition} then leaf end)")
        )
        places = {"argument": _argument(function), "leaf": self.parse(f'"{leaf}"')}
        filled: Node = _filled(self.parse(template), places, function["filter"])
        return filled

    def estimates(self, tree: Node) -> list[bool] | None:
        """Tell which columns of an answer rest on estimates; None if that cannot be seen.

        What aggregates does, and what refers to something that does, by its name.
        """
        named: set[str] = set()
        listed = [one for query in everything(tree) if is_query(query) for one in query.get("select_list", ())]
        while True:
            found = {_name_of(one) for one in listed if self._is_estimate(one, named)} - {""}
            if found == named:
                break
            named = found
        first = _first_select(tree)
        if any(one["class"] == "STAR" for one in first["select_list"]):
            return None
        return [self._is_estimate(one, named) for one in first["select_list"]]

    def _is_estimate(self, expression: Node, named: Set[str]) -> bool:
        return any(
            self._is_aggregate(node)
            or (node.get("class") == "COLUMN_REF" and node["column_names"][-1].lower() in named)
            for node in everything(expression)
        )

    def _weighed(self, value: Any, inside: bool) -> Any:
        """Replace aggregates inside selects from the release."""
        if isinstance(value, list):
            return [self._weighed(one, inside) for one in value]
        if not isinstance(value, dict):
            return value
        if is_query(value):
            inside = any(is_release(node) for node in within(value))
        weighed = {key: self._weighed(part, inside) for key, part in value.items()}
        return self._from_template(weighed) if inside and self._is_aggregate(value) else weighed

    def _from_template(self, function: Node) -> Node:
        """Write an aggregate as its template says."""
        places = {"weight": self.parse(f'"{WEIGHT}"'), "argument": _argument(function)}
        filled: Node = _filled(self.parse(TEMPLATES[_canonical(function)]), places, function["filter"])
        return filled | {"alias": function["alias"]}

    def _is_aggregate(self, node: Node) -> bool:
        return node.get("class") == "FUNCTION" and node["function_name"].lower() in self.aggregates

    def _refuse_unweighable(self, query: Node) -> None:
        """Refuse a select from the release that has no meaning for estimates."""
        source = query.get("from_table") or {}
        if not is_release(source):
            raise QueryError("release must stand alone in its FROM", "Aggregate it in a subquery, then join that.")
        if source["sample"] or source["column_name_alias"] or query["sample"]:
            raise QueryError(
                "release must be read whole and with its own column names", "Leave sampling and renaming out."
            )
        aggregates = [node for node in within(query) if self._is_aggregate(node)]
        if not (aggregates or query["group_expressions"] or query["aggregate_handling"] == "FORCE_AGGREGATES"):
            raise QueryError(
                "a select from release must aggregate, because its rows are cells and not people",
                "Use count(*), sum(x) or avg(x), perhaps with group by; for rows take records or a sample.",
            )
        for node in aggregates:
            _refuse_aggregate(node)
        self._refuse_rows(query, {RELEASE, source["alias"].lower()})

    def _refuse_rows(self, query: Node, names: Set[str]) -> None:
        """Refuse what means whole rows, which would hold weights: `*`, and the name of the table as a value."""
        for node in within(query):
            column = node.get("column_names", [])
            if node.get("class") == "STAR" or (len(column) == 1 and column[0].lower() in names - self.columns):
                raise QueryError("columns of release must be named one by one", "Write their names instead of *.")


def _canonical(function: Node) -> str:
    """The name of an aggregate among the templates."""
    name = function["function_name"].lower()
    return "count_star" if name == "count" and not _arguments(function) else SYNONYMS.get(name, name)


def _arguments(function: Node) -> list[Node]:
    """A function's arguments, which DuckDB 2 wraps with their names."""
    given: list[Node] = function["arguments"] if "arguments" in function else function["children"]
    return [one.get("expression", one) for one in given]


def _argument(function: Node) -> Node | None:
    return next(iter(_arguments(function)), None)


def _refuse_aggregate(function: Node) -> None:
    """Refuse aggregates that noise makes meaningless: every cell exists, and an empty one seldom has estimate 0."""
    name = function["function_name"].lower()
    if _canonical(function) not in TEMPLATES or function["distinct"]:
        raise QueryError(
            f"an aggregate over release ({name}{' distinct' if function['distinct'] else ''}) must be count, sum or "
            "avg, because every value has an estimate, whether there are people or not",
            "Group by the column and look at the counts.",
        )


def _filled(value: Any, places: Mapping[str, Node | None], condition: Node | None) -> Any:
    """Put nodes in the places that a template names, and a filter on each of its sums."""
    if isinstance(value, list):
        return [_filled(one, places, condition) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("class") == "COLUMN_REF":
        return places[value["column_names"][0]]
    filled = {key: _filled(part, places, condition) for key, part in value.items()}
    return filled | {"filter": condition} if value.get("function_name") in {"sum", "count", "list"} else filled


def _name_of(expression: Node) -> str:
    """The name by which an output can be referred to."""
    given = expression["alias"] or (expression["column_names"][-1] if expression["class"] == "COLUMN_REF" else "")
    return str(given).lower()


def _first_select(tree: Node) -> Node:
    """The select whose columns give the answer theirs: the first of a union."""
    while "select_list" not in tree:
        tree = next(node for node in within(tree) if is_query(node))
    return tree


def refuse_other_relations(tree: Node) -> None:
    """Refuse whatever would read anything but the release and named queries."""
    names = {one["key"].lower() for node in everything(tree) if is_query(node) for one in node["cte_map"]["map"]}
    if RELEASE in names:
        raise QueryError("a named query must not be called release", "Give it another name.")
    for node in everything(tree):
        if (is_query(node) and node["type"] not in QUERIES) or (is_relation(node) and node["type"] not in RELATIONS):
            kind = str(node["type"]).lower().replace("_", " ")
            raise QueryError(
                f"the SQL must read from release alone, and has a {kind}", "Select from release and its subqueries."
            )
        if is_relation(node) and node["type"] == "BASE_TABLE":
            path = ".".join(filter(None, (node["catalog_name"], node["schema_name"], node["table_name"])))
            if path != node["table_name"] or path.lower() not in {RELEASE, *names}:
                raise QueryError(f"table ({path[:40]}) must be release", "Nothing else can be read, and no files.")


def refuse_unstable(tree: Node, unstable: Set[str], columns: Set[str]) -> None:
    """Refuse functions that give something else each time.

    They would be drawn for each cell, not for each person, and no answer could be had again. Clocks look like columns,
    and are some where the release has one of that name.
    """
    for node in everything(tree):
        called = node["function_name"].lower() if node.get("class") == "FUNCTION" else ""
        column = ".".join(node["column_names"]).lower() if node.get("class") == "COLUMN_REF" else ""
        name = called if called in unstable else column
        if called in unstable or column in CLOCKS - columns:
            raise QueryError(
                f"a function ({name[:40]}) must give the same whenever and for whatever cell it is called",
                "Write the value itself, such as date '2024-01-31'.",
            )


def refuse_growing(tree: Node) -> None:
    """Refuse functions that could fill any memory from a few words: DuckDB's limits do not hold for single values."""
    for node in everything(tree):
        name = node["function_name"].lower() if node.get("class") == "FUNCTION" else ""
        if name in GROWING:
            raise QueryError(f"a function ({name}) must not make values of any size", "Write the values themselves.")


def is_query(node: Node) -> bool:
    """Whether a node is a select, a union or the like."""
    return "cte_map" in node


def is_relation(node: Node) -> bool:
    """Whether a node is something that a select reads from."""
    return "sample" in node and "alias" in node and "class" not in node


def is_release(node: Node) -> bool:
    """Whether a node is the relation `release`."""
    return node.get("type") == "BASE_TABLE" and node["table_name"].lower() == RELEASE


def everything(value: Any) -> Iterator[Node]:
    """Walk through all nodes."""
    if isinstance(value, dict):
        yield value
    for part in _parts(value):
        yield from everything(part)


def within(query: Node) -> Iterator[Node]:
    """Walk through the nodes that are a query's own, down to the queries inside it, which are included."""
    for part in _parts(query):
        yield from _until_query(part)


def _until_query(value: Any) -> Iterator[Node]:
    if isinstance(value, dict):
        yield value
        if is_query(value):
            return
    for part in _parts(value):
        yield from _until_query(part)


def _parts(value: Any) -> Iterator[Any]:
    yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def named_columns(tree: Node) -> set[str]:
    """All words that may name a column, in lower case; names of tables are among them, which does no harm."""
    columns = (node["column_names"] for node in everything(tree) if node.get("class") == "COLUMN_REF")
    return {name.lower() for names in columns for name in names}


def reads_release(tree: Node) -> bool:
    """Whether anything in a tree reads the release."""
    return any(is_release(node) for node in everything(tree))


def inner_queries(query: Node, known: Mapping[str, Node] | None = None) -> Iterator[Node]:
    """Walk through the queries inside a query, each with all the named ones that it may refer to."""
    known = {**(known or {}), **{one["key"]: one for one in query["cte_map"]["map"]}}
    for inner in filter(is_query, within(query)):
        own = {one["key"]: one for one in inner["cte_map"]["map"]}
        yield {**inner, "cte_map": {"map": list({**known, **own}.values())}}
        yield from inner_queries(inner, known)
