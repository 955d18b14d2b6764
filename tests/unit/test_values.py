"""What values say of themselves."""

import attrs
import pytest

import klaw_core
import klaw_journals
import klaw_tools
from klaw_core import Filters, QueryError, VectorSpace
from klaw_core.values.search import check_filters

LIBRARIES = (klaw_core, klaw_journals, klaw_tools)
VALUES = [kind for each in LIBRARIES for name in each.__all__ if attrs.has(kind := getattr(each, name))]


@pytest.mark.parametrize(
    ("revision", "shown"),
    [
        ("53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db", "53aa51172d14"),
        ("api.openai.com/v1", "api.openai.com/v1"),
        ("2025-11-03-preview", "2025-11-03-preview"),
        ("", ""),
    ],
)
def test_a_space_shortens_only_digests_in_its_text(revision, shown):
    assert str(VectorSpace("m", revision, 8)) == f"m@{shown} (8-d, cosine, mean)"


@pytest.mark.parametrize("kind", VALUES, ids=lambda kind: kind.__name__)
def test_the_types_of_fields_can_be_resolved_at_run_time(kind):
    """As attrs and cattrs do, for instance to write a value as JSON."""
    fields = attrs.fields(attrs.resolve_types(kind))
    assert [field.name for field in fields if isinstance(field.type, str)] == []


@pytest.mark.parametrize("name", ["source", "path", "chat_id"])
def test_a_filter_with_an_invalid_value_is_rejected_by_name(name):
    check_filters(Filters(**{name: "käse 🧀"}))
    with pytest.raises(QueryError, match=rf"{name} is not text: 'caf\\udce9/'"):
        check_filters(Filters(**{name: "caf\udce9/"}))
