"""All commands, by name, and the documents that are made from them and from the methods.

A command, and what it needs, is imported when it is called, so `--help` answers at once. That is why `COMMANDS` repeats
the first sentence of each command's own help; a test holds them equal.

Run as a program, this module writes the reference of the command line. With names of files, it writes the table of
methods into them, between `<!-- methods -->` and `<!-- /methods -->`.
"""

from __future__ import annotations

from importlib import import_module

import click

from sfumato.cli.show import OneSentence

COMMANDS = {
    "draft": ("publish", "Guess a schema from DATA, for you to correct and confirm."),
    "check": ("publish", "Tell which values of DATA would not fit its schema, before anything is spent."),
    "advise": (
        "advise",
        "Tell what to expect of each method on a table like DATA, from its schema alone: nothing is read or spent.",
    ),
    "cocluster": (
        "holder",
        "Show the structure of DATA: the most probable groups and intervals of all attributes at once.",
    ),
    "publish": ("publish", "Publish DATA: a table in a file, a folder or a database."),
    "inspect": ("releases", "Tell what a release promises, what was paid, and how it was made."),
    "verify": (
        "risk",
        "Check that a release is what it says: seal, sum, files, records, promise, author, account.",
    ),
    "sign": ("risk", "Sign a release with an OpenSSH key, so that others can tell who made it."),
    "query": (
        "query",
        "Estimate how many people satisfy CONDITION, such as \"age between 30 and 40 and sex = 'Female'\".",
    ),
    "sql": ("releases", "Answer a SELECT over the table `release` with estimates."),
    "sample": ("releases", "Draw synthetic records with original values."),
    "records": ("releases", "Write the generalized records with their counts."),
    "report": (
        "measure",
        "Write one page about a release that opens without a network: its promise, ledger, shape and distributions.",
    ),
    "risk": (
        "risk",
        "Tell what a release leaves an adversary: risks of exact groups, or what its epsilon means in odds.",
    ),
    "explain": (
        "risk",
        "Tell what could be claimed about a person from a release with capped confidence, and without it.",
    ),
    "evaluate": ("measure", "Tell what a release of DATA is worth: what can be learnt from it, how near it is."),
    "compare": (
        "measure",
        "Compare methods on DATA: each is published many times with known seeds and measured by rows held out.",
    ),
    "reproduce": (
        "measure",
        "Draw the figures of PAPER again (diffgen, cdiffgen, diffmulti, dpcocgen, confidence, all) and judge its "
        "claims.",
    ),
    "audit": ("measure", "Attack a method: publish neighbouring tables many times and bound its epsilon from below."),
    "studio": (
        "studio",
        "Open a local page on which all of it is done: from a table to a release, and from a release to answers.",
    ),
    "account": ("holder", "Show and settle what a table has paid."),
    "taxonomy": ("holder", "Carry taxonomies to and from hierarchy CSV files."),
    "schema": ("publish", "Print the JSON Schema of schema files, for editors."),
}
"""Every command: the module that has it, and the first sentence of its help."""


class Lazily(OneSentence):
    """A group that knows its commands by name and imports one when it is called."""

    def list_commands(self, _: click.Context) -> list[str]:
        """Name all commands."""
        return list(COMMANDS)

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        """Import a command."""
        if name not in COMMANDS:
            return None
        module = import_module(f"sfumato.cli.{COMMANDS[name][0]}")
        found: click.Command = getattr(module, {"schema": "json_schema"}.get(name, name))
        return found

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Tell in a line what each command does, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, says) for name, (_, says) in COMMANDS.items()])


@click.group(cls=Lazily, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="sfumato", prog_name="sfumato")
@click.option(
    "--debug", is_flag=True, help="Show the traceback of what fails unexpectedly; it may hold values of rows."
)
@click.pass_context
def main(context: click.Context, debug: bool) -> None:
    """Publish a table about people so that analysts can use it and nobody can find a person in it."""
    context.obj = debug
