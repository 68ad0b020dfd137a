"""`taciturn train --config`: one file for every option, and its hash in the release."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
import typer

from taciturn._internal import strict_json
from taciturn.cli.app import app
from taciturn.cli.config import OF_THE_CALL, config_keys
from taciturn.cli.train import train
from taciturn.config_file import Kind, file_digest, read_config
from taciturn.release.read import load_release
from tests.conftest import Command

OPTIONS = ["ratings.csv", "--scale", "1:5", "--epsilon", "1", "--solver"]
OPTIONS += ["input-perturbation", "--unit", "value", "--delta", "1e-2"]


def options_of_train() -> dict[str, list[str]]:
    """Parameters of the command as the command line knows them, and their spellings."""
    command: Any = typer.main.get_command(app)
    return {each.name: each.opts for each in command.commands["train"].params}


def test_every_option_of_train_is_a_key_of_the_file() -> None:
    options = options_of_train()
    keys = {key.name.replace("-", "_"): key for key in config_keys(train)}
    assert set(options) == {*keys, *OF_THE_CALL}
    for name, key in keys.items():
        assert name == "source" or f"--{key.name}" in options[name]
        assert key.help and key.placeholder


def test_a_new_option_becomes_a_key_or_is_refused() -> None:
    from typing import Annotated

    def command(
        weights: Annotated[Path | None, typer.Option(help="Weights.", metavar="FILE")] = None,
        half: Annotated[float, typer.Option(help="Half-life.")] = 1.5,
    ) -> None:
        pass

    first, second = config_keys(command)
    assert (first.name, first.kind, first.default) == ("weights", Kind.TEXT, None)
    assert (second.name, second.kind, second.default) == ("half", Kind.NUMBER, 1.5)

    def unknown(names: Annotated[list[str] | None, typer.Option(help="Names.")] = None) -> None:
        pass

    with pytest.raises(KeyError):
        config_keys(unknown)


@pytest.fixture
def config(taciturn: Command, tmp_path: Path) -> Path:
    shown = taciturn("train", *OPTIONS, "--show-config")
    assert (shown.returncode, shown.stderr) == (0, "")
    file = tmp_path / "taciturn.toml"
    file.write_text(shown.stdout, encoding="utf-8")
    rows = [f"{user},{item},{1 + (user + item) % 5}" for user in range(9) for item in range(7)]
    (tmp_path / "ratings.csv").write_text("\n".join(["user_id,item_id,rating", *rows, ""]))
    return file


def test_a_shown_file_holds_the_options_given_and_all_defaults(config: Path) -> None:
    values = read_config(config, config_keys(train)).values
    given = {"source": "ratings.csv", "scale": "1:5", "epsilon": 1.0}
    given |= {"solver": "input-perturbation", "unit": "value", "delta": 0.01}
    defaults = {
        name.replace("_", "-"): parameter.default
        for name, parameter in inspect.signature(train).parameters.items()
        if name not in OF_THE_CALL and parameter.default not in (None, inspect.Parameter.empty)
    }
    assert values == defaults | given
    text = config.read_text(encoding="utf-8")
    assert "# norm-bound = NUMBER" in text and "{solvers}" not in text
    assert "# With --solver paper: Norm bound" in text


@pytest.mark.parametrize(
    ("options", "unit"),
    [
        ([], "rating"),
        (["--unit", "user"], "user"),
        (["--solver", "gradient"], None),  # has to be chosen
        (["--solver", "non-private"], None),  # has none
    ],
)
def test_a_shown_file_names_the_default_unit(
    taciturn: Command, options: list[str], unit: str | None
) -> None:
    shown = json.loads(taciturn("train", *options, "--show-config", "--json").stdout)
    assert shown["train"].get("unit") == unit


def test_options_from_a_file_are_those_of_the_command_line(
    taciturn: Command, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every key of the file reaches the training as its option does."""
    from taciturn.training.job import Job

    seen: list[Job] = []
    monkeypatch.setattr(Job, "run", lambda job, **_: seen.append(job) or 1 / 0)  # type: ignore[func-returns-value]
    options: list[object] = ["ratings.csv", "--solver", "paper", "--unit", "value"]
    options += ["--epsilon-i", "0.5", "--delta", "1e-6", "--delta-i", "0.02", "--norm-bound", "2"]
    options += ["--centre", "item-mean", "--tau", "5", "--tolerance", "1e-4", "--patience", "3"]
    options += ["--factors", "7", "--iterations", "9", "--step-size", "0.1", "--seed", "4"]
    options += ["--regularization", "0.3", "--holdout", "0.2", "--threads", "1", "--scale", "1:5"]
    options += ["--columns", "user=u,item=i,rating=r", "--separator", ";", "--duplicates", "last"]
    options += ["--missing", "drop", "--outside", "clip", "--max-expansion", "7", "--no-header"]
    options += ["--user-list", "u.csv", "--item-list", "i.csv", "--users-out", "pseudonyms"]
    options += ["--pseudonyms-out", "p", "--pseudonyms-in", "q", "--sign", "k", "-o", "r"]
    options += ["--private-items-out", "s", "--latest", "l", "--pattern-is-public"]
    config.write_text(taciturn("train", *options, "--show-config").stdout, encoding="utf-8")
    for arguments in (options, ["--config", config]):
        taciturn("train", *arguments)
    first, second = seen
    assert second.outputs is not None and second.outputs.configuration is not None
    assert second.outputs.configuration.sha256 == file_digest(config)
    object.__setattr__(second.outputs, "configuration", None)
    assert first == second


def test_a_release_names_its_file_and_the_options_beside_it(
    taciturn: Command, config: Path, tmp_path: Path
) -> None:
    result = taciturn("train", "--config", config, "-o", "release", "--threads", 1, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    release = load_release(tmp_path / "release")
    found = release.facts.configuration
    assert found is not None and found.sha256 == file_digest(config)
    assert found.command_line == ("output",)  # threads change nothing
    verified = taciturn("verify", tmp_path / "release", "--config", config, "--json")
    document = json.loads(verified.stdout)
    assert document["configuration"] == found.to_dict()
    check = document["checks"][-1]
    assert check == {
        "name": "configuration",
        "passed": True,
        "detail": "the release names this file; the command line set: output",
    }
    assert f"`{found.sha256}`" in (tmp_path / "release" / "card.md").read_text(encoding="utf-8")


def test_verify_refuses_another_file_and_a_release_without_one(
    taciturn: Command, config: Path, tmp_path: Path
) -> None:
    taciturn("train", "--config", config, "-o", "with", cwd=tmp_path)
    taciturn("train", *OPTIONS, "-o", "without", cwd=tmp_path)
    assert load_release(tmp_path / "without").facts.configuration is None
    config.write_text(config.read_text(encoding="utf-8") + "# one more comment\n")
    for name, problem in (("with", "another configuration file"), ("without", "names no config")):
        assert taciturn("verify", name, cwd=tmp_path).returncode == 0
        result = taciturn("verify", name, "--config", config, cwd=tmp_path)
        assert result.returncode == 1 and problem in result.stdout


def test_an_option_in_both_places_is_refused(taciturn: Command, config: Path) -> None:
    lines = config.read_text(encoding="utf-8").splitlines()
    line = lines.index("epsilon = 1.0") + 1
    result = taciturn("train", "--config", config, "--epsilon", "2", "--dry-run")
    assert result.returncode == 2
    assert result.stderr == (
        f"error: {config}, line {line}: epsilon is also on the command line; set it in one place "
        "only\n"
    )


def test_a_mistake_in_the_file_is_one_line(taciturn: Command, config: Path) -> None:
    config.write_text("[train]\nsource = 'synthetic:10k'\nepsilom = 1\n")
    result = taciturn("train", "--config", config)
    assert result.returncode == 2 and result.stdout == ""
    problem = "line 3: 'epsilom' is not an option; did you mean epsilon?"
    assert result.stderr == f"error: {config}, {problem}\n"
    config.write_text("[train]\nsource = 'synthetic:10k'\nepsilon = -1\n")
    result = taciturn("train", "--config", config, "--dry-run")
    assert result.returncode == 2 and result.stderr.count("\n") == 1


def test_options_of_a_call_are_no_keys(taciturn: Command, config: Path) -> None:
    config.write_text("[train]\nsource = 'synthetic:10k'\nresume = true\n")
    result = taciturn("train", "--config", config)
    assert "line 3: 'resume' is not an option" in result.stderr
    assert taciturn("train", "--config", config, "--help").returncode == 0


def test_a_run_resumes_only_with_the_same_file(
    taciturn: Command, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("taciturn.training.workspace.publish", interrupted)
        assert taciturn("train", "--config", config, "-o", "r", cwd=tmp_path).returncode == 130
    content = config.read_bytes()
    config.write_bytes(content + b"# later\n")
    resume = ["train", "--config", config, "-o", "r", "--resume"]
    assert "another configuration" in taciturn(*resume, cwd=tmp_path).stderr
    config.write_bytes(content)
    assert taciturn(*resume, cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    "damage",
    [
        {"sha256": "A" * 64},
        {"sha256": 3},
        {"command_line": ["unit", "output"]},
        {"command_line": ["output", "output"]},
        {"command_line": ["--output"]},
        {"command_line": "output"},
        {"more": 1},
    ],
    ids=str,
)
def test_damaged_facts_about_a_file_are_refused(damage: dict[str, object]) -> None:
    from taciturn.errors import InvalidDocument
    from taciturn.release.facts import _configuration

    sound: dict[str, object] = {"sha256": "a" * 64, "command_line": ["output", "unit"]}
    assert _configuration(sound).to_dict() == sound
    with pytest.raises(InvalidDocument, match="the release's configuration"):
        _configuration(sound | damage)


def test_the_schema_of_a_release_knows_the_file(
    taciturn: Command, config: Path, tmp_path: Path
) -> None:
    import jsonschema

    import taciturn as package

    taciturn("train", "--config", config, "-o", "r", cwd=tmp_path)
    document = strict_json.read(tmp_path / "r" / "certificate.json")
    schema = json.loads(
        (Path(package.__file__).parent / "schemas" / "release.schema.json").read_text()
    )
    jsonschema.validate(document, schema)
    document["facts"]["configuration"]["sha256"] = "0"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)
