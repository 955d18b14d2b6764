"""What values say of themselves."""

import pytest

from klaw_core import VectorSpace


@pytest.mark.parametrize(
    ("revision", "shown"),
    [
        ("53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db", "53aa51172d14"),
        ("api.openai.com/v1", "api.openai.com/v1"),
        ("2025-11-03-preview", "2025-11-03-preview"),
        ("", ""),
    ],
)
def test_a_space_shows_the_beginning_of_a_digest_and_the_whole_of_any_other_revision(revision, shown):
    assert str(VectorSpace("m", revision, 8)) == f"m@{shown} (8-d, cosine, mean)"
