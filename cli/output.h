#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "reports/analysis.h"
#include "reports/comparison.h"
#include "reports/step_difference.h"
#include "traces/tee_sink.h"

/// Where answers and traces of a verb go.
namespace isthmus::cli {

/// Throws base::Error if a file to write is one to read, or is to be written twice; paths are
/// compared after links and `..` are resolved.
void CheckFiles(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs);
/// The same for a verb whose one output is that of -o.
void CheckOutput(const std::vector<std::string>& inputs, const Output& output);

/// For every program's start: a reader that is gone ends what is written to it and nothing else.
void IgnoreLostReaders();
/// Writes an answer to standard output or to the file of -o. Where the reader of standard output is
/// gone, the process ends as any that writes to a closed pipe.
void Write(const Output& output, const std::string& text);
/// Writes to standard error, for whoever watches: where nobody can (a full disk, a pipe that was
/// closed), nothing is said, and what goes on goes on.
void Tell(const std::string& text);
/// The report of a run in the form that was asked for.
void WriteFigures(const Output& output, const reports::Figures& figures);
void WriteComparison(const Output& output, const reports::Comparison& comparison);
void WriteDifference(const Output& output, const reports::StepDifference& difference);

/// A run on its way into an analysis, the sinks of the caller and any number of trace files.
///
/// Opens the files at once, so that a path that can't be written fails before anything is
/// simulated. Not copyable: sink() refers to the members.
class TraceOutputs {
 public:
  TraceOutputs(const std::vector<std::string>& files, std::vector<traces::TraceSink*> sinks);
  TraceOutputs(const TraceOutputs&) = delete;
  TraceOutputs& operator=(const TraceOutputs&) = delete;

  traces::TraceSink& sink() { return *tee_; }
  const reports::Analysis& analysis() const { return analysis_; }

 private:
  reports::Analysis analysis_;
  std::vector<std::unique_ptr<traces::TraceSink>> files_;
  std::unique_ptr<traces::TeeSink> tee_;
};

}  // namespace isthmus::cli
