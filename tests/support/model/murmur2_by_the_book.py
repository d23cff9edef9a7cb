"""A reference implementation of murmur2, written like its description with 32-bit masks."""

MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    h = (0x9747B28C ^ len(data)) & MASK
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * 0x5BD1E995 & MASK
        k ^= k >> 24
        h = (h * 0x5BD1E995 & MASK) ^ (k * 0x5BD1E995 & MASK)
    if rest := data[whole:]:
        h = (h ^ int.from_bytes(rest, "little")) * 0x5BD1E995 & MASK
    h ^= h >> 13
    h = h * 0x5BD1E995 & MASK
    return h ^ (h >> 15)
