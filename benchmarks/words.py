"""Text that looks like what agents say: made of a few hundred words, the same on every machine.

Neither random bytes nor one sentence over and over: both would make any compressor look like what it is not. A
message keeps to a topic and comes back to its words, so 1 KB of it shrinks to somewhat less than half under zstd.
"""

from __future__ import annotations

from random import Random

MESSAGE_BYTES = 1024

_WORDS = """
    the to of and a in is for that it on with as was be this are by an or from at we which not have has were can
    but all they will when one more there would been if their what other about some then also into only its new so
    than could after time these may first any such should order customer request refund account payment invoice
    shipment report result table column value number record search query page document section paragraph summary
    source answer question tool call model agent step plan task list next previous current open closed pending done
    failed found missing checked updated created removed changed read wrote sent received returned asked answered
    approved rejected cancelled waiting ready running finished paused please note however therefore because
    although while before during since until again already still never always often usually perhaps certainly
    clearly exactly nearly roughly between within without against through across under over near far early late
    recent old small large high low long short total average minimum maximum daily weekly monthly price cost budget
    amount balance discount tax fee rate percent share growth decline increase decrease change difference
    comparison estimate forecast revenue margin profit loss market product service team office warehouse supplier
    contract policy rule limit threshold error warning message response status code file folder path line function
    class module test build release version branch commit merge review comment issue ticket priority owner reviewer
    deadline schedule meeting email phone address city country region language user admin session token key
    password login link button form field menu screen image chart graph map data database server client network
    storage memory cache queue worker process thread job batch event trigger filter sort group join index schema
    migration backup restore import export upload download format text string integer list set pair node edge tree
    root leaf parent child
""".split()  # noqa: SIM905 - words read best as words
_NAMES = """
    Ada Grace Linus Barbara Edsger Radia Donald Frances Niklaus Margaret Tony Hedy
""".split()  # noqa: SIM905 - words read best as words
_FOLLOWERS = 3
_TOPIC_WORDS = 9


def _any_word(chance: Random) -> str:
    """The first words are the most frequent, roughly as in language."""
    return _WORDS[int(len(_WORDS) * chance.random() ** 2.2)]


def _followers(word: str) -> list[str]:
    chance = Random(f"after {word}")
    found = dict.fromkeys(_any_word(chance) for _ in range(20))
    return [one for one in found if one != word][:_FOLLOWERS]


_NEXT = {word: _followers(word) for word in _WORDS}


def message(number: int, size: int = MESSAGE_BYTES) -> str:
    """The message of this number: so many characters, all of them ASCII."""
    chance = Random(f"message {number}")
    topic = [chance.choice(_WORDS) for _ in range(_TOPIC_WORDS)]
    text = ""
    while len(text) < size:
        text += _sentence(chance, topic) + " "
    return text[:size]


def _sentence(chance: Random, topic: list[str]) -> str:
    words = [chance.choice(topic)]
    for _ in range(chance.randint(6, 18)):
        words.append(_detail(chance) if chance.random() < 0.04 else _next_word(chance, words[-1], topic))
    words[0] = words[0].capitalize()
    return " ".join(words) + chance.choice([".", ".", ".", "?", ":"])


def _next_word(chance: Random, word: str, topic: list[str]) -> str:
    dice = chance.random()
    if dice < 0.62 and word in _NEXT:
        return _NEXT[word][int(_FOLLOWERS * chance.random() ** 2.5)]
    return chance.choice(topic) if dice < 0.94 else _any_word(chance)


def _detail(chance: Random) -> str:
    number = chance.randint(1, 99_999)
    return chance.choice([chance.choice(_NAMES), str(number), f"{number / 100:.2f} EUR", f"#{number}"])
