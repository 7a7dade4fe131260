from __future__ import annotations

import pytest

from tests.store.postgres.growing import done, opened


@pytest.fixture
def store(postgres_url):
    """An open store in an empty schema."""
    store = opened(postgres_url)
    yield store
    done(store.close())
