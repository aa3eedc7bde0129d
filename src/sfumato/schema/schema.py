"""The public description of a table: attributes with their leaves, the class, the lifetime budget.

Everything that shapes a release comes from here and nothing from the rows, so a person confirms the schema before it is
used. It is read from and written to plain YAML.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    model_validator,
)

from sfumato.errors import MethodError, SchemaError, SfumatoError
from sfumato.exact import read_fraction
from sfumato.markup import joined, table, tag
from sfumato.schema.attributes import Categorical, Identifier, Numeric

FORMAT = 1
"""The version of the file format."""
LARGEST_FILE = 64 * 2**20
"""No schema file has more bytes."""
MOST_LEAVES = 5_000_000
"""All attributes together have no more leaves."""
LARGEST = 3
"""How many attributes are named when a domain is too large."""
MOST_ROWS = 1000
"""No more rows of one person count: each would have next to nothing of an epsilon."""

Column = Annotated[Categorical | Numeric | Identifier, Field(discriminator="kind")]
Predictor = Categorical | Numeric


def _budget(value: Any) -> Fraction | None:
    if value in (None, "", "~"):
        return None
    budget = read_fraction(value)
    if budget is None or budget <= 0:
        raise SchemaError(f"budget ({str(value)[:40]}) must be a number greater than 0", "Write for example 4 or 1/2.")
    return budget


Budget = Annotated[
    Fraction | None,
    BeforeValidator(_budget, json_schema_input_type=int | float | str),
    PlainSerializer(lambda budget: None if budget is None else str(budget), return_type=str | None),
]


def _rows_per_person(value: Any) -> Any:
    rows = read_fraction(value)
    if rows is None or rows.denominator != 1 or not 1 <= rows <= MOST_ROWS:
        raise SchemaError(
            f"rows_per_person ({str(value)[:40]}) must be a whole number from 1 to {MOST_ROWS:,}",
            "`sfumato check` tells what share of rows each number keeps.",
        )
    return int(rows)


RowsPerPerson = Annotated[int, BeforeValidator(_rows_per_person, json_schema_input_type=int | str)]


class Schema(BaseModel):
    """A table's public facts. Immutable; `digest` identifies it."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    sfumato: int = FORMAT
    """The version of this file format."""
    name: str = "table"
    """What to call the table."""
    confirmed: bool = False
    """Set to true by a person who has made sure that nothing here betrays the rows."""
    origin: Literal["declared", "derived from private data"] = "declared"
    """Where the description comes from."""
    budget: Budget = None
    """The epsilon that all releases of this table together may spend."""
    ledger: str | None = None
    """The id of the ledger that the table pays from, noted when it begins; it is not published."""
    missing_values: list[str] = Field(default_factory=lambda: ["", "?", "NA", "NaN", "null"])
    """The texts that mean "no value"."""
    person: str | None = None
    """The column that tells whom a row is about. It is read, and never published."""
    rows_per_person: RowsPerPerson = 1
    """How many rows of one person count at most; which ones is drawn by lot."""
    missing_person: Literal["refused", "own"] = "refused"
    """What a row without an identifier does: it makes the table refused, or it is a person of its own."""
    attributes: dict[str, Column]
    """The columns by name. Columns that are not named here are not read."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.sfumato > FORMAT:
            raise SchemaError(f"schema format ({self.sfumato}) must be at most {FORMAT}", "Upgrade Sfumato to read it.")
        for name in self.attributes:
            if not name.isprintable() or not name.strip():
                raise SchemaError(f"attribute name {name!r:.40} must be printable text", "Rename the column.")
        leaves = sum(_most_leaves(column) for column in self.attributes.values())
        if leaves > MOST_LEAVES:
            raise SchemaError(
                f"all attributes together must have at most {MOST_LEAVES:,} leaves, and have about {leaves:,}",
                "Use larger steps or coarser taxonomies.",
            )
        targets = [name for name, column in self.attributes.items() if column.kind == "class"]
        if len(targets) > 1:
            raise SchemaError(
                f"one attribute at most must have kind class, and {len(targets)} do ({', '.join(targets)})",
                "Make the others categorical.",
            )
        self._check_person()
        return self

    def _check_person(self) -> None:
        if self.person is None:
            if self.rows_per_person != 1 or self.missing_person != "refused":
                raise SchemaError(
                    "rows_per_person and missing_person must go with person, the column that tells whom a row is about",
                    "Write for example `person: patient_id`.",
                )
            return
        if not self.person.isprintable() or not self.person.strip():
            raise SchemaError(f"person ({self.person!r:.40}) must be the name of a column", "Name one.")
        if not isinstance(self.attributes.get(self.person, Identifier()), Identifier):
            raise SchemaError(
                f"person ({self.person[:40]}) must be an identifier, and is declared as an attribute to publish",
                "Declare it as `{kind: identifier}`, or not at all.",
            )

    @cached_property
    def target(self) -> str | None:
        """The name of the class attribute."""
        return next((name for name, column in self.attributes.items() if column.kind == "class"), None)

    @cached_property
    def predictors(self) -> dict[str, Predictor]:
        """The attributes that regions are made of: all but identifiers and the class."""
        return {
            name: column
            for name, column in self.attributes.items()
            if not isinstance(column, Identifier) and column.kind != "class"
        }

    @property
    def classes(self) -> tuple[str, ...]:
        """The class values, or one nameless class for a table without a class attribute."""
        if self.target is None:
            return ("",)
        column = self.attributes[self.target]
        assert isinstance(column, Categorical)
        return column.tree.leaves

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of leaves of each predictor."""
        return tuple(column.leaves for column in self.predictors.values())

    @property
    def most_rows(self) -> int | None:
        """How many rows of a person count at most; None if neighbours differ by one record, whoever it is about."""
        return None if self.person is None else self.rows_per_person

    @property
    def unit(self) -> str:
        """What an epsilon is spent on: a record, or a person as a column tells."""
        return "record" if self.person is None else f"person ({self.person})"

    @cached_property
    def digest(self) -> str:
        """A fingerprint of every declared fact."""
        return fingerprint(self.plain())

    def undeclared(self, columns: Collection[str]) -> tuple[str, ...]:
        """The columns of a table that are not named here."""
        return tuple(name for name in columns if name not in self.attributes and name != self.person)

    def with_target(self, name: str) -> Schema:
        """Make another categorical attribute the class; the former one becomes an ordinary attribute."""
        column = self.attributes.get(name)
        if column is None or isinstance(column, Identifier):
            raise SchemaError(
                f"target ({name}) must be an attribute of the schema", f"Choose one of {self._choices()}."
            )
        if isinstance(column, Numeric):
            raise SchemaError(
                f"target ({name}) must be categorical, and is numeric", f"Choose one of {self._choices()}."
            )
        if column.leaves < 2:
            raise SchemaError(f"target ({name}) must have two values or more", f"Choose one of {self._choices()}.")
        kinds = {
            other: one.model_copy(update={"kind": "class" if other == name else "categorical"})
            if isinstance(one, Categorical)
            else one
            for other, one in self.attributes.items()
        }
        return self._with(attributes=kinds)

    def only(self, names: Collection[str]) -> Schema:
        """Keep some attributes, in the schema's order: the others are neither read nor published."""
        for name in names:
            if name not in self.attributes or isinstance(self.attributes[name], Identifier):
                raise SchemaError(
                    f"attribute ({name[:40]}) must be one of the schema that can be published",
                    f"It has {', '.join([*self.predictors, *filter(None, [self.target])][:20])}.",
                )
        return self._with(attributes={name: column for name, column in self.attributes.items() if name in names})

    def with_ledger(self, key: str | None) -> Schema:
        """Note which ledger the table pays from, or leave that out."""
        return self if key == self.ledger else self._with(ledger=key)

    def without_budget(self) -> Schema:
        """Leave out what concerns the table's account: for releases that are booked nowhere."""
        return self if self.budget is None and self.ledger is None else self._with(budget=None, ledger=None)

    def _with(self, **changed: Any) -> Schema:
        facts = {field: getattr(self, field) for field in type(self).model_fields}
        return Schema(**(facts | changed))

    def _choices(self) -> str:
        names = [
            name for name, column in self.attributes.items() if isinstance(column, Categorical) and column.leaves > 1
        ]
        return ", ".join(names[:12]) or "none: the schema has no categorical attribute with two values"

    def _repr_html_(self) -> str:
        rows = [
            (name, column.title, column.kind, "" if isinstance(column, Identifier) else f"{column.leaves:,}")
            for name, column in self.attributes.items()
        ]
        told = "" if self.confirmed else " (not confirmed)"
        shown = table(("attribute", "what it means", "kind", "values"), rows, (3,))
        return joined([tag("strong", self.name), told, shown])

    def plain(self) -> dict[str, Any]:
        """The schema as plain values for YAML or JSON, defaults left out."""
        plain = self.model_dump(mode="json", exclude_defaults=True)
        for name, column in self.attributes.items():
            plain["attributes"][name] = {"kind": column.kind} | plain["attributes"][name]
        return {"sfumato": self.sfumato, "name": self.name, "confirmed": self.confirmed} | plain

    def dump(self, like: str = "") -> str:
        """Write the schema as YAML, with the comments of an earlier text of it, if one is given."""
        from sfumato.schema.yaml import read_comments, write_commented, write_yaml

        return write_commented(self.plain(), read_comments(like)) if like else write_yaml(self.plain())

    @classmethod
    def parse(cls, plain: Any) -> Schema:
        """Read plain values; the error says in one sentence what is wrong."""
        try:
            return cls.model_validate(plain)
        except ValidationError as error:
            raise _one_sentence(error) from None

    @classmethod
    def loads(cls, text: str) -> Schema:
        """Read YAML. Every scalar is read as text, so that the category `No` stays a name."""
        from sfumato.schema.yaml import read_yaml

        return cls.parse(read_yaml(text))

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema file."""
        try:
            if Path(path).stat().st_size > LARGEST_FILE:
                raise SchemaError(
                    f"schema {path} must be smaller than {LARGEST_FILE >> 20} MB", "Use coarser taxonomies."
                )
            return cls.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            raise SchemaError(
                f"schema {path} must be a readable text file",
                "Write one with `sfumato draft DATA`, or name it with --schema.",
            ) from None


def fingerprint(plain: Any) -> str:
    """Give the digest of a schema's plain values in their order, which decides the codes of attributes and leaves."""
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()


def _most_leaves(column: Column) -> int:
    """An upper bound of a column's leaves, found without building its grid."""
    if isinstance(column, Numeric):
        return column.most_leaves
    return 0 if isinstance(column, Identifier) else column.leaves


def _one_sentence(error: ValidationError) -> SfumatoError:
    """Turn pydantic's first complaint into an error of ours; one that we raised in a validator keeps its words."""
    first = error.errors()[0]
    place = ".".join(
        str(part) for part in first["loc"] if part not in ("categorical", "class", "numeric", "identifier")
    )
    raised = first.get("ctx", {}).get("error")
    if isinstance(raised, SfumatoError):
        return SchemaError(f"{place}: {raised.problem}" if place else raised.problem, raised.remedy)
    return SchemaError(
        f"schema field {place or 'schema'}: {first['msg'].lower()}", "See docs/schema.md for the fields."
    )


def variables_of(schema: Schema) -> dict[str, Predictor]:
    """The published attributes in the order of their axes: all but identifiers, the class last."""
    if schema.target is None:
        return dict(schema.predictors)
    target = schema.attributes[schema.target]
    assert isinstance(target, Categorical)
    return {**schema.predictors, schema.target: target}


def kinds_of(schema: Schema) -> list[Literal["numeric", "categorical"]]:
    """The kind of each variable: numeric ones have an order, with missing values at its end."""
    return ["numeric" if isinstance(column, Numeric) else "categorical" for column in variables_of(schema).values()]


def cells_of(schema: Schema) -> int:
    """The number of cells of the domain: combinations of leaves and classes."""
    return math.prod(schema.shape) * len(schema.classes)


def refuse_large(schema: Schema, most: int, remedy: str) -> None:
    """Refuse a domain that has too many cells, naming its longest attributes."""
    cells = cells_of(schema)
    if cells > most:
        leaves = {name: column.leaves for name, column in schema.predictors.items()}
        if schema.target is not None:
            leaves[schema.target] = len(schema.classes)
        largest = sorted(leaves.items(), key=lambda one: -one[1])[:LARGEST]
        raise MethodError(
            f"the domain ({cells:,} cells) must have at most {most:,} cells; the longest attributes are "
            + ", ".join(f"{name} ({count:,})" for name, count in largest),
            remedy,
        )
