from typing import final

@final
class _Rewriter: ...
