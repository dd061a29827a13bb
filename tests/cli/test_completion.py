"""Tab in bash, zsh and fish as people have them, from the first press on, with files of any name."""

from __future__ import annotations

import shutil

import pytest
from cli.shells import Shell

from fullbloom.cli.completion import list_commands
from fullbloom.cli.parser import COMMANDS, build_parser

SHELLS = ["bash", "zsh", "fish"]
FILES = ["my file.txt", "it's $5 & more.txt", "na\u00efve.txt", "sub dir/in ner.txt", "-dash.txt"]
#: What is typed, and the words that the program is given after a Tab.
TYPED = {
    "ded": ["dedup"],
    "hel": ["help"],
    "--vers": ["--version"],
    "help mer": ["help", "merge"],
    "man mer": ["man", "merge"],
    "man --out": ["man", "--output"],
    "completion zs": ["completion", "zsh"],
    "dedup --dup": ["dedup", "--dupes-output"],
    "dedup --format cs": ["dedup", "--format", "csv"],
    "dedup --format=cs": ["dedup", "--format=csv"],
    "seen --kind rol": ["seen", "--kind", "rolling"],
    "build --layout part": ["build", "--layout", "partitioned"],
    "dedup my": ["dedup", "my file.txt"],
    "dedup it": ["dedup", "it's $5 & more.txt"],
    "dedup na": ["dedup", "na\u00efve.txt"],
    "dedup 'my": ["dedup", "my file.txt"],
    "dedup --state my": ["dedup", "--state", "my file.txt"],
    "dedup --state=my": ["dedup", "--state=my file.txt"],
    "check my\\ file.txt it": ["check", "my file.txt", "it's $5 & more.txt"],
    "info sub\\ dir/in": ["info", "sub dir/in ner.txt"],
    "merge -q ./my": ["merge", "-q", "./my file.txt"],
}


@pytest.fixture
def shell(tmp_path):
    """Return a function that starts a shell, with a script evaluated, among the files."""
    opened = []

    def start(name, **options):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed; make setup installs it for root")
        for file in FILES:
            (tmp_path / file).parent.mkdir(exist_ok=True)
            (tmp_path / file).write_bytes(b"")
        opened.append(Shell(name, tmp_path, **options))
        return opened[-1]

    yield start
    for instance in opened:
        instance.close()


@pytest.fixture
def script(fullbloom):
    return lambda name: fullbloom("completion", name, check=0).stdout.decode()


def typed(shell, text):
    """The words after Tab; zsh and fish leave "=" or a space behind an option, which is theirs to choose."""
    return [
        word.removesuffix("=") if word.startswith("--") else word for word in shell.type(f"fullbloom {text}")
    ]


@pytest.mark.parametrize("name", SHELLS)
def test_words_options_values_and_files_are_completed(shell, script, name):
    here = shell(name, start=script(name))
    wrong = {text: found for text, words in TYPED.items() if (found := typed(here, text)) != words}
    assert not wrong


@pytest.mark.parametrize("name", SHELLS)
def test_every_option_of_every_command_is_completed(shell, script, name):
    here = shell(name, start=script(name))
    for command, _, options in list_commands(build_parser()):
        flags = [flag for option in options for flag in option.names if flag.startswith("--")]
        for flag in flags[:: max(len(flags) // 3, 1)]:
            ends = (i for i in range(3, len(flag) + 1) if sum(f.startswith(flag[:i]) for f in flags) == 1)
            if end := next(ends, 0):  # 0: the beginning of another option
                assert typed(here, f"{command} {flag[:end]}") == [command, flag]


@pytest.mark.parametrize("name", ["zsh", "fish"])
@pytest.mark.parametrize("text", ["ded", "dedup my"])
def test_a_script_that_the_shell_autoloads_completes_from_the_first_tab(shell, script, name, text):
    here = shell(name, lazily=script(name))
    assert typed(here, text) == TYPED[text]
    assert typed(here, text) == TYPED[text]


def test_bash_completes_from_the_first_tab_after_eval(shell, script):
    assert typed(shell("bash", start=script("bash")), "dedup --dup") == TYPED["dedup --dup"]


@pytest.mark.parametrize("name", SHELLS)
def test_the_start_up_line_of_the_help_works(shell, fullbloom, tmp_path, name):
    """As the page says: the program itself prints the script, before anything else is set up."""
    printed = tmp_path / "script"
    printed.write_bytes(fullbloom("completion", name, check=0).stdout)
    ways = {"bash": 'eval "$(cat {})"', "zsh": 'eval "$(cat {})"', "fish": "cat {} | source"}
    assert typed(shell(name, start=ways[name].format(printed)), "dedup my") == TYPED["dedup my"]


@pytest.mark.parametrize("name", SHELLS)
def test_every_command_is_completed(shell, script, name):
    here = shell(name, start=script(name))
    for command in (*COMMANDS, "help"):
        others = [other for other in (*COMMANDS, "help") if other != command]
        end = next(i for i in range(1, 20) if not any(other.startswith(command[:i]) for other in others))
        assert typed(here, command[:end]) == [command]
