"""The `taciturn` command: its subcommands."""

import typer

from taciturn.cli import audit, budget, compare, data, demo, doctor, paper, private, release, train
from taciturn.cli.commands import prepared
from taciturn.cli.config import ConfigCommand
from taciturn.cli.outcome import outcome
from taciturn.cli.overview import root
from taciturn.cli.solvers import CatalogHelp

app = root()
app.add_typer(audit.app, name="audit")
app.add_typer(budget.app, name="budget")
app.add_typer(data.app, name="data")
app.add_typer(paper.app, name="paper")
app.add_typer(private.app, name="private")
app.command(name="demo", epilog="Example: taciturn demo")(demo.demo)
app.command(name="doctor", epilog="Example: taciturn doctor --json")(doctor.doctor)

app.command(
    name="train",
    cls=ConfigCommand,
    epilog="Example: taciturn train ratings.csv --scale 1:5 --epsilon 1 -o release",
)(train.train)
app.command(
    name="compare",
    cls=CatalogHelp,
    epilog="Example: taciturn compare ml-1m --epsilons 0.5,1,2 -o comparison",
)(compare.compare)

for _name, _command, _example in (
    ("verify", release.verify, "taciturn verify release --public-key taciturn.key.pub"),
    ("keygen", release.keygen, "taciturn keygen -o taciturn.key"),
    ("recommend", release.recommend, "taciturn recommend release --user 42 -k 10"),
    ("similar", release.similar, "taciturn similar release --item 318"),
    ("predict", release.predict, "taciturn predict release --user 42 --item 318"),
    ("export", release.export, "taciturn export release --to npz -o release.npz"),
):
    app.command(name=_name, epilog=f"Example: {_example}")(_command)


def run(arguments: list[str] | None = None) -> int:
    """Exit code of one call of the command line; errors are printed as one line on stderr."""
    return outcome(prepared(typer.main.get_command(app)), arguments)
