#pragma once

#include "base/units.h"

/// Literals of the units: `using namespace isthmus::base::literals;`.
///
/// Bit rates are spelled as data sheets of NICs print them (`400_Gbps`), byte rates as those of
/// NVLink do (`450_GBps`). k, M, G, T are powers of 1000; Ki, Mi, Gi, Ti powers of 1024.
namespace isthmus::base::literals {

// One literal for whole numbers and one for fractions, both evaluated by the compiler only.
// NOLINTBEGIN(bugprone-macro-parentheses): a type can't stand in parentheses.
#define ISTHMUS_REAL_LITERAL(suffix, Type, factor)               \
  consteval Type operator""_##suffix(unsigned long long value) { \
    return Type(static_cast<double>(value) * (factor));          \
  }                                                              \
  consteval Type operator""_##suffix(long double value) {        \
    return Type(static_cast<double>(value) * (factor));          \
  }
#define ISTHMUS_BYTES_LITERAL(suffix, factor)                                           \
  consteval Bytes operator""_##suffix(unsigned long long value) {                       \
    return Bytes(static_cast<std::int64_t>(value) * static_cast<std::int64_t>(factor)); \
  }
// NOLINTEND(bugprone-macro-parentheses)

ISTHMUS_BYTES_LITERAL(B, 1)
ISTHMUS_BYTES_LITERAL(kB, 1'000)
ISTHMUS_BYTES_LITERAL(MB, 1'000'000)
ISTHMUS_BYTES_LITERAL(GB, 1'000'000'000)
ISTHMUS_BYTES_LITERAL(TB, 1'000'000'000'000)
ISTHMUS_BYTES_LITERAL(KiB, 1LL << 10)
ISTHMUS_BYTES_LITERAL(MiB, 1LL << 20)
ISTHMUS_BYTES_LITERAL(GiB, 1LL << 30)
ISTHMUS_BYTES_LITERAL(TiB, 1LL << 40)

ISTHMUS_REAL_LITERAL(FLOP, Flops, 1.0)
ISTHMUS_REAL_LITERAL(GFLOP, Flops, 1e9)
ISTHMUS_REAL_LITERAL(TFLOP, Flops, 1e12)
ISTHMUS_REAL_LITERAL(PFLOP, Flops, 1e15)

ISTHMUS_REAL_LITERAL(s, Seconds, 1.0)
ISTHMUS_REAL_LITERAL(ms, Seconds, 1e-3)
ISTHMUS_REAL_LITERAL(us, Seconds, 1e-6)
ISTHMUS_REAL_LITERAL(ns, Seconds, 1e-9)
ISTHMUS_REAL_LITERAL(ps, Seconds, 1e-12)

ISTHMUS_REAL_LITERAL(Bps, BytesPerSecond, 1.0)
ISTHMUS_REAL_LITERAL(MBps, BytesPerSecond, 1e6)
ISTHMUS_REAL_LITERAL(GBps, BytesPerSecond, 1e9)
ISTHMUS_REAL_LITERAL(TBps, BytesPerSecond, 1e12)
ISTHMUS_REAL_LITERAL(Mbps, BytesPerSecond, 1e6 / 8)
ISTHMUS_REAL_LITERAL(Gbps, BytesPerSecond, 1e9 / 8)
ISTHMUS_REAL_LITERAL(Tbps, BytesPerSecond, 1e12 / 8)

ISTHMUS_REAL_LITERAL(GFLOPps, FlopsPerSecond, 1e9)
ISTHMUS_REAL_LITERAL(TFLOPps, FlopsPerSecond, 1e12)
ISTHMUS_REAL_LITERAL(PFLOPps, FlopsPerSecond, 1e15)

#undef ISTHMUS_REAL_LITERAL
#undef ISTHMUS_BYTES_LITERAL

static_assert(400_Gbps == 50_GBps);

}  // namespace isthmus::base::literals
