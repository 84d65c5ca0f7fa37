#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace isthmus::profiles {

/// How a figure came to be known, from most to least certain.
enum class Mark {
  kMeasured,              ///< read off a measurement, not through a formula
  kFitted,                ///< a formula's coefficient, fitted to kernel or collective rows
  kDataSheet,             ///< printed by the vendor
  kAssumed,               ///< a choice; its source says why
  kChosenAfterSeeingRuns  ///< picked with end-to-end runs in view: those runs
                          ///< are not blind for it
};

/// The word of a mark as profile files spell it: `measured`, `fitted`,
/// `data_sheet`, `assumed`, `chosen_after_seeing_runs`.
std::string_view MarkName(Mark mark);

/// The mark a word stands for; nothing for any other word.
std::optional<Mark> ParseMark(std::string_view word);

/// How well the formula behind a fitted parameter meets rows that the fit did
/// not see: quantiles of |predicted / measured - 1|, as fractions.
struct Residual {
  double median = 0;
  double p90 = 0;
  std::int64_t num_rows = 0;

  bool operator==(const Residual&) const = default;
};

/// One figure about a machine.
struct Parameter {
  double value = 0;
  std::string unit;  ///< SI without prefixes: `s`, `B`, `B/s`, `FLOP/s`,
                     ///< `B/param` ...; `1` if none
  Mark mark = Mark::kAssumed;
  std::string source;  ///< rows and script, data sheet, or the reason of an assumption
  std::optional<Residual> residual;
  std::optional<double> strict;  ///< with kChosenAfterSeeingRuns: the value one would use
                                 ///< without having seen a run
  std::string origin;            ///< `file:line` that set it, for messages; not part of
                                 ///< the value's identity
};

/// What one kind of machine was measured to do: an ordered table of named
/// parameters.
///
/// Keys are dotted paths (`gemm.bf16.peak_rate`); README.md of this folder
/// lists them and describes the file format. A profile is an immutable value;
/// ProfileBuilder makes one, MergeProfiles combines several.
///
/// Accessors throw base::Error when a key is missing or has another unit than
/// asked for; the text names the key, the profile and its files, since both are
/// mistakes in a file. Thread-safe: const only. Returned references live as
/// long as the profile. Cost: a lookup is O(log n); models look up once, when
/// they are built.
class Profile {
 public:
  const std::string& name() const { return name_; }
  const std::string& date() const { return date_; }  ///< ISO 8601, of the youngest part
  const std::vector<std::string>& files() const { return files_; }  ///< in the order merged
  const std::map<std::string, Parameter, std::less<>>& parameters() const { return parameters_; }

  bool has(std::string_view key) const { return parameters_.contains(key); }
  const Parameter& Get(std::string_view key) const;

  /// The value in `unit`, which must be the unit the profile states.
  double Value(std::string_view key, std::string_view unit) const;
  double Number(std::string_view key) const { return Value(key, "1"); }
  std::int64_t Count(std::string_view key) const;  ///< unit `1`, needs a whole number
  base::Seconds Time(std::string_view key) const { return base::Seconds(Value(key, "s")); }
  base::Bytes Size(std::string_view key) const;  ///< unit `B`, rounded to whole bytes
  base::BytesPerSecond Bandwidth(std::string_view key) const {
    return base::BytesPerSecond(Value(key, "B/s"));
  }
  base::FlopsPerSecond Rate(std::string_view key) const {
    return base::FlopsPerSecond(Value(key, "FLOP/s"));
  }

  /// The keys that start with `prefix`, in order.
  std::vector<std::string> KeysUnder(std::string_view prefix) const;

  /// The profile that nobody's view of end-to-end runs has touched: parameters
  /// that state a strict value have it as their value, marked kAssumed. Those
  /// marked kChosenAfterSeeingRuns without one stay as they are.
  Profile Strict() const;

  /// A fingerprint of all keys, values, strict values, units, marks, sources and
  /// residuals.
  /// Names, dates, files and origins don't enter: two files that state the same
  /// are the same profile. Stable across machines and builds.
  std::uint64_t Hash() const;

 private:
  friend class ProfileBuilder;
  friend Profile MergeProfiles(std::string name, const std::vector<Profile>& parts);

  std::string name_;
  std::string date_;
  std::vector<std::string> files_;
  std::map<std::string, Parameter, std::less<>> parameters_;
};

/// Collects the parameters of one file.
class ProfileBuilder {
 public:
  explicit ProfileBuilder(std::string name, std::string date = {}, std::string file = {});

  /// Adds a parameter. Throws base::Error if the key is malformed (not
  /// lower-case words of [a-z0-9_] joined by dots), was set before, a value is
  /// not finite, or a strict one stands beside another mark than
  /// kChosenAfterSeeingRuns.
  ProfileBuilder& Set(std::string key, Parameter parameter);

  Profile Build() &&;

 private:
  Profile profile_;
};

/// One profile of several: a key that a later part has replaces an earlier
/// part's.
Profile MergeProfiles(std::string name, const std::vector<Profile>& parts);

}  // namespace isthmus::profiles
