from dataclasses import dataclass, make_dataclass

import pytest
from codec_classes import Branch, Color, Leaf, Level, Message, Tree, Twig

from keepstep.codec.registry import DEFAULT, Registry
from keepstep.errors import BadInput


def test_a_class_is_registered_under_its_qualified_name():
    registry = Registry()
    assert registry.register(Message) is Message
    assert registry.class_of(f"{Message.__module__}.Message") is Message
    assert registry.register(Message) is Message


def test_two_classes_cannot_have_one_name():
    registry = Registry()
    registry.register(Message, "message")
    with pytest.raises(BadInput, match="has that name"):
        registry.register(Leaf, "message")
    with pytest.raises(BadInput, match="has that name"):
        registry.child().register(Leaf, "message")


def test_a_class_with_two_names_is_written_under_the_last_and_read_under_both():
    registry = Registry()
    registry.register(Message, "old")
    registry.register(Message, "new")
    assert registry.tag_of(Message) == "new"
    assert registry.class_of("old") is registry.class_of("new") is Message


class Plain:
    pass


@dataclass
class Base:
    a: int


class Derived(Base):
    pass


@pytest.mark.parametrize("wrong", [Plain, dict, int, 5, "text", None, make_dataclass("D", [], bases=(dict,)), Derived])
def test_what_is_of_no_known_kind_is_refused(wrong):
    with pytest.raises(BadInput, match="cannot be registered"):
        Registry().register(wrong)


@pytest.mark.parametrize("name", ["", "\ud800", 5])
def test_a_name_must_be_text(name):
    with pytest.raises(BadInput, match="must be text"):
        Registry().register(Message, name)


def test_a_child_knows_what_its_parent_knows_and_more():
    child = DEFAULT.child()
    child.register(Message)
    assert DEFAULT.tag_of(Message) is None
    assert child.child().tag_of(Message) is not None


def test_a_tree_registers_every_class_it_can_hold():
    registry = Registry()
    registry.register_tree(Tree)
    for cls in (Tree, Branch, Twig, Leaf, Color, Level):
        assert registry.tag_of(cls) is not None
