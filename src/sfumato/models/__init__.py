"""Models: what was measured becomes answers. One file for each kind, imported when a release names it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from sfumato.errors import ReleaseError
from sfumato.models.model import Model
from sfumato.privacy.measurements import Draft
from sfumato.schema.schema import Schema

MODELS: Mapping[str, str] = {
    "grid": "grid.GridModel",
    "coclusters": "coclusters.CoclusterModel",
    "tree": "tree.TreeModel",
    "tree with the paper's weights": "tree.PaperTreeModel",
    "merged grid": "grid.MergedGridModel",
    "pruned tree": "pruned.PrunedTreeModel",
    "tree over cells": "cube.CubeModel",
    "exact tree": "tree.ExactTreeModel",
    "network of families": "bayes.BayesModel",
    "network of clipped families": "bayes.ClippedBayesModel",
    "boxes": "boxes.BoxModel",
    "network": "marginals.NetworkModel",
}
"""Every model by the name that releases give it: the module that has it, and its class."""


def model_type(name: str) -> type[Model]:
    """Look a model up by name."""
    if name not in MODELS:
        raise ReleaseError(
            f"model ({name[:40]}) must be one of {', '.join(MODELS)}", "Upgrade Sfumato, or correct the method."
        )
    module, _, model = MODELS[name].partition(".")
    found: type[Model] = getattr(import_module(f"sfumato.models.{module}"), model)
    return found


def model_of(schema: Schema, draft: Draft) -> Model:
    """Make the model that a draft names."""
    return model_type(draft.model)(schema, draft)
