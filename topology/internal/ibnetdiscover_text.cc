#include "topology/internal/ibnetdiscover_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <regex>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"

namespace isthmus::topology::internal {
namespace {

constexpr std::size_t kMaxMistakes = 20;
constexpr const char* kOnePrint = "give one print of one fabric";
constexpr std::size_t kMaxLine = 4096;  // bytes; std::regex recurses, a level a character
constexpr std::size_t kQuoted = 60;
constexpr std::size_t kNamed = 4;  // of things that are missing
constexpr const char* kHowToPrint =
    "give what ibnetdiscover prints without options, e.g. ibnetdiscover > fabric.txt";

// Data rate of one lane in Gbit/s, line coding taken off: 8b/10b up to QDR, 64b/66b up to EDR.
// InfiniBand Architecture Specification, volume 2; IBTA roadmap for NDR and XDR.
struct LaneSpeed {
  std::string_view name;
  double gbit_per_s;
};
constexpr std::array<LaneSpeed, 9> kLaneSpeeds{{{"SDR", 2},
                                                {"DDR", 4},
                                                {"QDR", 8},
                                                {"FDR10", 10},
                                                {"FDR", 14.0625 * 64 / 66},
                                                {"EDR", 25},
                                                {"HDR", 50},
                                                {"NDR", 100},
                                                {"XDR", 200}}};

// No number here has more digits than fit.
int NumberOf(const std::string& digits) {
  int number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

class Reader {
 public:
  Reader(std::string_view text, std::string file)
      : lines_(std::string(base::WithoutByteOrderMark(text))), file_(std::move(file)) {}

  DiscoveredText Run() {
    std::string line;
    while (std::getline(lines_, line)) {
      ++line_;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (IsText(line)) Line(line);
    }
    if (mistakes_.empty()) CheckWhole();
    if (!mistakes_.empty()) throw base::ScenarioError(std::move(mistakes_));
    return std::move(read_);
  }

 private:
  // Whether a line can be looked at at all. Nothing of one that can't is quoted.
  bool IsText(const std::string& line) {
    if (const auto binary = base::FindBinary(line)) {
      Mistake(fmt::format("this is no text file: byte 0x{:02X}",
                          static_cast<std::uint8_t>(line[*binary])),
              kHowToPrint, static_cast<int>(*binary) + 1);
      return false;
    }
    if (line.size() <= kMaxLine) return true;
    Mistake(fmt::format("a line of {} bytes; ibnetdiscover prints none of more than {}",
                        line.size(), kMaxLine),
            kHowToPrint);
    return false;
  }

  // Every end of a cable has a section of its own, unless the print was cut off.
  void CheckWhole() {
    const bool has_switch =
        std::ranges::any_of(read_.nodes, [](const auto& entry) { return entry.second.is_switch; });
    if (!has_switch) {
      line_ = 0;
      return Mistake("there is no switch in it", kHowToPrint);
    }
    std::map<std::string, int> missing;  // the line that leads there, by key
    for (const auto& [ends, cable] : read_.cables) {
      for (const std::string& key : {ends.first.first, ends.second.first}) {
        if (!read_.nodes.contains(key)) missing.emplace(key, cable.line);
      }
    }
    if (missing.empty()) return;
    std::string named;
    std::size_t num_named = 0;
    for (const auto& [key, line] : missing) {
      if (++num_named > kNamed) break;
      const auto told = told_.find(key);
      named += fmt::format("{}{} (line {})", num_named == 1 ? "" : ", ",
                           told == told_.end() ? key : told->second, line);
    }
    line_ = missing.begin()->second;
    Mistake(fmt::format("cables lead to {} without a section of {}: {}{}",
                        base::Counted(static_cast<std::int64_t>(missing.size()), "node", "nodes"),
                        missing.size() == 1 ? "its own" : "their own", named,
                        missing.size() > kNamed ? ", …" : ""),
            "is the file cut off? Every adapter has a section \"Ca\", every switch one \"Switch\"");
  }

  void Line(const std::string& line) {
    static const std::regex silent(
        R"(\s*(#.*)?|(vendid|devid|sysimgguid|switchguid|caguid|rtguid)=.*|DR path .*|(Non-)?Chassis\b.*)");
    static const std::regex node(
        R"re((Switch|Ca|Rt)\s+\d+\s+"([SHR]-[0-9a-fA-F]+)"\s*(?:#\s*"([^"]*)".*)?)re");
    static const std::regex port(
        R"re(\[(\d{1,4})\](?:\[ext \d+\])?(?:\([0-9a-fA-Fx]*\))?\s+"([SHR]-[0-9a-fA-F]+)"\[(\d{1,4})\](?:\[ext \d+\])?(?:\([0-9a-fA-Fx]*\))?\s*(#.*)?)re");
    std::smatch parts;
    if (std::regex_match(line, silent)) return;
    if (std::regex_match(line, parts, node)) return Node(parts);
    if (std::regex_match(line, parts, port)) return Port(parts);
    Mistake(fmt::format("can't read \"{}\"", line.substr(0, kQuoted)),
            "a line is a node as in 'Switch 40 \"S-…\" # \"name\"', or one of its ports as in "
            "'[1] \"H-…\"[1] # … 4xNDR'");
  }

  void Node(const std::smatch& parts) {
    node_ = parts[2];
    DiscoveredNode& node = read_.nodes[node_];
    if (node.line > 0) {
      Mistake(fmt::format("\"{}\" comes again; it was on line {}", node_, node.line), kOnePrint);
    }
    const bool is_switch = parts[1] == "Switch";
    const std::string description = parts[3];
    node = {is_switch && description.empty() ? node_ : description, is_switch, line_};
  }

  void Port(const std::smatch& parts) {
    if (node_.empty()) {
      Mistake("a port of nothing", "a node's line comes before those of its ports");
      return;
    }
    DiscoveredPort from{node_, NumberOf(parts[1])};
    DiscoveredPort to{parts[2], NumberOf(parts[3])};
    if (const std::string told = QuotedIn(parts[4]); !told.empty()) told_.emplace(to.first, told);
    if (to < from) std::swap(from, to);
    DiscoveredCable cable = SpeedOf(parts[4]);
    cable.line = line_;
    const auto [known, is_new] = read_.cables.try_emplace({from, to}, cable);
    if (is_new) {
      TakePorts({&from, &to});
      return;
    }
    if (!cable.bandwidth) return;
    // Seen from its other end.
    if (known->second.bandwidth && known->second.speed != cable.speed) {
      Mistake(fmt::format("the cable runs at {}, on line {} at {}", cable.speed, known->second.line,
                          known->second.speed),
              kOnePrint);
    }
    known->second = cable;
  }

  // Of a cable that wasn't known.
  void TakePorts(std::initializer_list<const DiscoveredPort*> ports) {
    for (const DiscoveredPort* port : ports) {
      const auto [taken, is_free] = line_of_port_.try_emplace(*port, line_);
      if (is_free) continue;
      Mistake(fmt::format("port {} of \"{}\" has another cable, on line {}", port->second,
                          port->first, taken->second),
              kOnePrint);
    }
  }

  // What a port's comment calls the node that it leads to.
  static std::string QuotedIn(const std::string& comment) {
    const std::size_t begin = comment.find('"');
    if (begin == std::string::npos) return {};
    const std::size_t end = comment.find('"', begin + 1);
    return end == std::string::npos ? "" : comment.substr(begin + 1, end - begin - 1);
  }

  // Width and speed are the last word of the comment, if they are printed.
  DiscoveredCable SpeedOf(const std::string& comment) {
    static const std::regex speed(R"((?:^|.*\s)(\d{1,2})x([A-Z]+\d*)\s*)");
    std::smatch parts;
    if (!std::regex_match(comment, parts, speed)) return {};
    const std::string name = parts[2];
    const auto* const known = std::ranges::find(kLaneSpeeds, name, &LaneSpeed::name);
    if (known == kLaneSpeeds.end()) {
      Mistake(fmt::format("unknown speed \"{}\"", name),
              "known: SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR, XDR");
      return {};
    }
    const int lanes = NumberOf(parts[1]);
    if (lanes == 0) return {};
    return {base::BytesPerSecond(lanes * known->gbit_per_s * 1e9 / 8),
            fmt::format("{}x{}", lanes, name), 0};
  }

  void Mistake(std::string what, std::string hint, int column = 1) {
    if (mistakes_.size() >= kMaxMistakes) return;
    mistakes_.push_back({file_, line_, line_ > 0 ? column : 0, std::move(what), std::move(hint)});
  }

  std::istringstream lines_;
  std::string file_;
  int line_ = 0;
  std::string node_;
  DiscoveredText read_;
  std::map<DiscoveredPort, int> line_of_port_;  // of the cable in it
  std::map<std::string, std::string> told_;     // what ports' comments call nodes, by key
  std::vector<base::Diagnostic> mistakes_;
};

}  // namespace

DiscoveredText ParseIbnetdiscover(std::string_view text, const std::string& file) {
  return Reader(text, file).Run();
}

}  // namespace isthmus::topology::internal
