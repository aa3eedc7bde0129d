"""Read and write the YAML of schema files: only text, lists and mappings, so that nothing is taken for another type."""

from __future__ import annotations

from typing import Any

import yaml

from sfumato.errors import SchemaError


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
