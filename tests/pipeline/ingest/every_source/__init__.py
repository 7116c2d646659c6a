"""Every kind of source in the same ten situations, as its user meets them: a module of cells for each kind."""

import pytest

pytest.register_assert_rewrite(
    *(
        f"{__name__}.{module}"
        for module in ("world", "feeds", "lanes", "pages", "pushes", "tiktoks", "videos")
    )
)
