"""Guarantee: a command gets its options as a frozen dataclass with a field for each that it declares."""

import argparse
import dataclasses
import inspect

import pytest

from fullbloom.cli.parser import COMMANDS, build_parser


def parser_of(name):
    """Return the parser of one command."""
    (commands,) = (
        action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    return commands.choices[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_declared_option_is_a_field(name):
    declared = {action.dest for action in parser_of(name)._actions} - {"help"}
    fields = {field.name: field for field in dataclasses.fields(COMMANDS[name].OPTIONS)}
    assert declared <= set(fields)
    # A field that a command does not declare has a value for it, such as that of an option of others.
    undeclared = [fields[field].default for field in set(fields) - declared]
    assert dataclasses.MISSING not in undeclared


@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_frozen_and_named_by_the_command(name):
    command = COMMANDS[name]
    assert command.OPTIONS.__dataclass_params__.frozen
    (parameter,) = inspect.signature(command.run).parameters.values()
    assert parameter.annotation == command.OPTIONS.__name__
