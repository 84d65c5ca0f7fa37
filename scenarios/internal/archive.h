#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"

/// One description of a struct's keys for all that is done with them.
///
/// A function `Fields(Archive&, T&)` names each key of a struct once, with its type, bounds,
/// default and meaning. A Reader fills the struct from a file with it, a Recorder turns the struct
/// back into a tree (effective values, written scenarios, the hash), a Describer prints the
/// reference of keys.
namespace isthmus::scenarios::internal {

// Why a text is no value of a key; an empty message stands for success.
struct Failure {
  std::string message;
  std::string hint;
  bool failed() const { return !message.empty(); }
};

enum class Presence { kOptional, kRequired };

// A single value, as archives see it: how to set it from text and how to print it.
struct Scalar {
  std::string type;  // for the reference: "integer, 1 to 1048576"
  std::function<Failure(const std::string& text, bool is_quoted)> parse;
  std::function<std::optional<std::string>()>
      print;  // nothing: no value, as if the key were absent
  std::function<std::optional<std::string>()> print_default =
      {};                // what counts where print gives nothing; none: nothing does
  bool is_text = false;  // printed with quotes where YAML needs them
  // In StructOr: the key that a list instead of the map gives; none: lists are no value.
  std::string list_key = {};
};

class Archive {
 public:
  virtual ~Archive() = default;

  virtual void Value(std::string_view key, Scalar scalar, Presence presence,
                     std::string_view doc) = 0;
  // A list of single values; `item(i)` after `resize(n)`.
  virtual void Values(std::string_view key, std::size_t size,
                      const std::function<void(std::size_t)>& resize,
                      const std::function<Scalar(std::size_t)>& item, std::string_view doc) = 0;

  using Body = std::function<void(Archive&)>;
  // A map with a struct's keys. `set` says whether there is one; null if there always is.
  virtual void Struct(std::string_view key, const Body& body, bool* set, std::string_view doc) = 0;
  // A map with a struct's keys, or a single value instead of it, or a list where the scalar has a
  // list_key. Whichever is there is called; `is_struct` says which one to print.
  virtual void StructOr(std::string_view key, Scalar scalar, bool is_struct, const Body& body,
                        std::string_view doc) = 0;

  // Structs by name, or in a list. `add(name)` appends one to read into; `visit(i, archive)` and
  // `visit_default(archive)` list the keys of the i-th and of a fresh one.
  struct Items {
    std::vector<std::string> names;  // of a list: as many empty ones
    std::function<void(const std::string& name)> add;
    std::function<void(std::size_t, Archive&)> visit;
    Body visit_default;
  };
  virtual void Named(std::string_view key, const Items& items, std::string_view item_name,
                     std::string_view doc) = 0;
  virtual void List(std::string_view key, const Items& items, std::string_view doc) = 0;

  // A key that is known but not built yet: the reader refuses it and says so.
  virtual void NotBuilt(std::string_view key, std::string_view doc) = 0;
};

// ---- Single values ------------------------------------------------------------------------------

struct IntegerRange {
  std::int64_t min = 0;
  std::int64_t max = 0;
};

// A word of a closed set. A word with a `not_built` text is known, and refused with that text.
struct Word {
  std::string_view text;
  int value = 0;
  std::string_view not_built = {};
};

Scalar IntegerScalar(std::function<void(std::int64_t)> set,
                     std::function<std::optional<std::int64_t>()> get, IntegerRange range);
Scalar RealScalar(std::function<void(double)> set, std::function<std::optional<double>()> get,
                  double min, double max);
Scalar BoolScalar(bool& value);
Scalar TextScalar(std::string& text);
Scalar WordScalar(std::function<void(int)> set, std::function<int()> get, std::vector<Word> words);
Scalar BandwidthScalar(base::BytesPerSecond& value);
Scalar TimeScalar(base::Seconds& value);
// Numbers in the order they are named: "0, 2, 4-7". No number twice.
Scalar NumberListScalar(std::vector<int>& numbers, IntegerRange range);

template <typename T>
Scalar Integer(T& value, IntegerRange range) {
  return IntegerScalar([&value](std::int64_t parsed) { value = static_cast<T>(parsed); },
                       [&value] { return std::optional<std::int64_t>(value); }, range);
}
template <typename T>
Scalar Integer(std::optional<T>& value, IntegerRange range) {
  return IntegerScalar([&value](std::int64_t parsed) { value = static_cast<T>(parsed); },
                       [&value]() -> std::optional<std::int64_t> {
                         return value ? std::optional<std::int64_t>(*value) : std::nullopt;
                       },
                       range);
}
inline Scalar Real(double& value, double min, double max) {
  return RealScalar([&value](double parsed) { value = parsed; },
                    [&value] { return std::optional<double>(value); }, min, max);
}
inline Scalar Real(std::optional<double>& value, double min, double max) {
  return RealScalar([&value](double parsed) { value = parsed; }, [&value] { return value; }, min,
                    max);
}
template <typename E>
Scalar OneOf(E& value, std::vector<Word> words) {
  return WordScalar([&value](int parsed) { value = static_cast<E>(parsed); },
                    [&value] { return static_cast<int>(value); }, std::move(words));
}
template <typename E>
Word Means(std::string_view text, E value) {
  return {text, static_cast<int>(value)};
}
// A word that means something to be built later.
inline Word Later(std::string_view text, std::string_view why) { return {text, 0, why}; }

}  // namespace isthmus::scenarios::internal
