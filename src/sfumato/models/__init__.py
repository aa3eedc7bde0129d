"""Models: what was measured becomes answers. One file for each kind, and this is where they are known by name."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.errors import ReleaseError
from sfumato.models.boxes import BoxModel
from sfumato.models.coclusters import CoclusterModel
from sfumato.models.grid import GridModel
from sfumato.models.model import Answers, Estimate, Model, Nonnegative
from sfumato.models.tree import ExactTreeModel, PaperTreeModel, TreeModel
from sfumato.privacy.measurements import Draft
from sfumato.schema.schema import Schema

MODELS: Mapping[str, type[Model]] = {
    "grid": GridModel,
    "coclusters": CoclusterModel,
    "tree": TreeModel,
    "tree with the paper's weights": PaperTreeModel,
    "exact tree": ExactTreeModel,
    "boxes": BoxModel,
}

__all__ = ["MODELS", "Answers", "Estimate", "Model", "Nonnegative", "model_of", "model_type"]


def model_type(name: str) -> type[Model]:
    """Look a model up by name."""
    if name not in MODELS:
        raise ReleaseError(
            f"model ({name[:40]}) must be one of {', '.join(MODELS)}", "Upgrade Sfumato, or correct the method."
        )
    return MODELS[name]


def model_of(schema: Schema, draft: Draft) -> Model:
    """Make the model that a draft names."""
    return model_type(draft.model)(schema, draft)
