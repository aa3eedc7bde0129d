"""The program Khiops as a second opinion on data grids, where `khiops-core` is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

COMMAND = "khiops_coclustering"
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


@dataclass(frozen=True)
class Opinion:
    """What Khiops found: costs to the ten digits that it prints, and the part of each value, per variable."""

    cost: float
    null_cost: float
    labels: tuple[NDArray[np.int64], ...]


def is_installed() -> bool:
    """Tell whether the program can be run."""
    return shutil.which(COMMAND, path=PATH) is not None


def coclustering(histogram: NDArray[np.int64], kinds: Sequence[str], folder: Path) -> Opinion:
    """Let Khiops co-cluster a histogram that is not independent, in an empty folder."""
    names = [f"X{axis}" for axis in range(histogram.ndim)]
    words = {"numeric": "Numerical", "categorical": "Categorical"}
    declared = [*(f"{words[kind]} {name};" for name, kind in zip(names, kinds, strict=True)), "Numerical Weight;"]
    (folder / "table.kdic").write_text("Dictionary table {\n" + "\n".join(declared) + "\n};\n")
    lines = ["\t".join([*names, "Weight"])]
    lines += ["\t".join(map(str, [*cell, histogram[tuple(cell)]])) for cell in np.argwhere(histogram).tolist()]
    (folder / "table.txt").write_text("\n".join(lines) + "\n")
    (folder / "scenario.txt").write_text("\n".join(_scenario(folder, names)) + "\n")
    arguments = [COMMAND, "-b", "-i", str(folder / "scenario.txt"), "-e", str(folder / "log.txt")]
    subprocess.run(arguments, check=True, capture_output=True, env={**os.environ, "PATH": PATH}, timeout=300)
    report = json.loads((folder / "result.khcj").read_text())["coclusteringReport"]
    labels = [
        _labels(partition, values)
        for partition, values in zip(report["dimensionPartitions"], histogram.shape, strict=True)
    ]
    return Opinion(report["summary"]["cost"], report["summary"]["nullCost"], tuple(labels))


def _labels(partition: dict[str, Any], values: int) -> NDArray[np.int64]:
    """Give the part of each value."""
    if "intervals" in partition:
        uppers = [interval["bounds"][1] for interval in partition["intervals"][:-1]]
        return np.searchsorted(uppers, np.arange(values))
    labels = np.zeros(values, np.int64)
    for number, group in enumerate(partition["valueGroups"]):
        labels[[int(value) for value in group["values"] if value.isdigit()]] = number
    return labels


def _scenario(folder: Path, names: Sequence[str]) -> list[str]:
    """Give the commands of a batch run."""
    data, parameters = "Database.DatabaseSpec.Data", "AnalysisSpec.CoclusteringParameters"
    insert, named = f"{parameters}.Attributes.InsertItemAfter", f"{parameters}.Attributes.Name"
    return [
        "ClassManagement.OpenFile",
        f"ClassFileName {folder / 'table.kdic'}",
        "OK",
        "Database.ClassName table",
        f"{data}.DatabaseFiles.List.Key",
        f"{data}.DatabaseFiles.DataTableName {folder / 'table.txt'}",
        f"{data}.HeaderLineUsed true",
        "Database.DatabaseSpec.Sampling.SampleNumberPercentage 100.0",
        *(line for name in names for line in (insert, f"{named} {name}")),
        f"{parameters}.FrequencyAttributeName Weight",
        f"AnalysisResults.CoclusteringFileName {folder / 'result.khcj'}",
        "BuildCoclustering",
        "ClassManagement.Quit",
        "OK",
    ]
