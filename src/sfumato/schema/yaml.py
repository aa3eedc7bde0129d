"""Read and write the YAML of schema files: only text, lists and mappings, so that nothing is taken for another type."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from sfumato.errors import SchemaError

WIDTH = 110
"""How wide comments are."""


def read_yaml(text: str) -> Any:
    """Read plain values; every scalar stays text."""
    try:
        return yaml.load(text, Loader=_TextLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1}: {getattr(error, 'problem', None) or 'not readable'})" if mark else ""
        raise SchemaError(f"the schema must be well-formed YAML{where}", "Correct that line.") from None


def write_yaml(plain: Any) -> str:
    """Write plain values."""
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100, default_flow_style=None)


@dataclass(frozen=True)
class Comments:
    """What stands in a schema file besides the schema: lines at its head, and the reason for each attribute."""

    head: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)


def write_commented(plain: Mapping[str, Any], comments: Comments) -> str:
    """Write plain values of a schema, with a reason above each attribute."""
    attributes = plain["attributes"]
    blocks = [comments.head, write_yaml({**plain, "attributes": {}}).replace("attributes: {}", "attributes:")]
    for name, facts in attributes.items():
        lines = textwrap.wrap(comments.reasons.get(name, ""), WIDTH, break_long_words=False)
        blocks += [f"  # {line}\n" for line in lines]
        blocks.append(textwrap.indent(write_yaml({name: facts}), "  "))
    return "".join(blocks)


def read_comments(text: str) -> Comments:
    """The comments of a file that `write_commented` wrote, so that it can be written again with them.

    >>> read_comments("# Look!\\nattributes:\\n  # whole\\n  # numbers\\n  age: {}\\n")
    Comments(head='# Look!\\n', reasons={'age': 'whole numbers'})
    """
    lines = text.splitlines(keepends=True)
    head = "".join(itertools.takewhile(lambda line: line.startswith("#"), lines))
    reasons: dict[str, str] = {}
    above: list[str] = []
    for line in lines:
        if line.startswith("  # "):
            above.append(line.removeprefix("  # ").strip())
            continue
        if above and line.startswith("  ") and line[2] not in " #-":
            names = read_yaml(line.strip().partition(": ")[0].rstrip(":") + ":")
            reasons |= dict.fromkeys(map(str, names), " ".join(above))
        above = []
    return Comments(head, reasons)


class _TextLoader(yaml.BaseLoader):
    """YAML without types, tags or aliases: text, lists and mappings, each key once."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.get_mark()
            raise yaml.composer.ComposerError(None, None, "aliases are not allowed", mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping = super().construct_mapping(node, deep=deep)
        if len(mapping) < len(node.value):
            raise yaml.constructor.ConstructorError(None, None, "a key is repeated", node.start_mark)
        return mapping
