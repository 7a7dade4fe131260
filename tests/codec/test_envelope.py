import random
import threading

import pytest

from keepstep.codec.compress import compress, decompress
from keepstep.codec.envelope import MAGIC, VERSION, pack, unpack
from keepstep.errors import Damaged, NewerFormat

TEXT = b"The quick brown fox jumps over the lazy dog. " * 50
NOISE = random.Random(1).randbytes(3000)


@pytest.mark.parametrize("content", [b"", b"x", b"x" * 512, b"x" * 513, TEXT, NOISE])
def test_content_comes_out_as_it_went_in(content):
    assert unpack(pack(content)) == content
    assert len(pack(content)) <= len(content) + 4


def test_a_body_that_does_not_shrink_stays_raw():
    assert compress(NOISE) == b"\x00" + NOISE
    assert compress(TEXT)[:1] == b"\x01"


def test_more_than_the_limit_is_refused():
    bomb = pack(b"\x00" * 10_000_000)
    assert len(bomb) < 2000
    for body in (bomb, pack(NOISE)):
        with pytest.raises(Damaged, match="more than"):
            unpack(body, limit=2999)


def test_a_body_that_is_cut_off_or_longer_is_damage():
    body = pack(TEXT)
    for wrong in [body[:length] for length in range(len(body))] + [
        body + b"x",
        body + compress(TEXT)[1:],
        b"PK" + body,
    ]:
        with pytest.raises(Damaged):
            unpack(wrong)
    assert body[:2] == MAGIC


def test_a_newer_version_or_flag_is_named_so():
    body = pack(TEXT)
    for head in (VERSION + 1 << 4, VERSION << 4 | 2, VERSION << 4 | 1):
        with pytest.raises(NewerFormat):
            unpack(body[:2] + bytes([head]) + body[3:])


class Rot:
    is_sealing = True

    def seal(self, data, run_id, seq):
        return bytes([seq]) + data[::-1]

    def open(self, data, run_id, seq):
        if data[0] != seq:
            raise Damaged("moved")
        return bytes(data[:0:-1])


def test_a_seal_closes_what_was_compressed_and_a_plain_body_is_refused_where_all_are_sealed():
    body = pack(TEXT, Rot(), "run", 7)
    assert unpack(body, seal=Rot(), run_id="run", seq=7) == TEXT
    with pytest.raises(Damaged, match="moved"):
        unpack(body, seal=Rot(), run_id="run", seq=8)
    with pytest.raises(NewerFormat, match="sealed"):
        unpack(body)
    with pytest.raises(Damaged, match="not sealed"):
        unpack(pack(TEXT), seal=Rot())


def test_threads_compress_at_once():
    wrong = []

    def work(number):
        content = TEXT + bytes([number]) * 500
        wrong.extend(1 for _ in range(100) if decompress(compress(content), 1 << 20) != content)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
