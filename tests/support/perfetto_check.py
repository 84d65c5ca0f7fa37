"""Decodes a Perfetto trace with the published schema and checks that a viewer can show it.

Checked: packets are of one sequence that starts cleanly; every interned number was given a text
before; every event's track was described before; times per track never go back; slices nest and are
all closed; every flow starts once and ends once, not before its start; memory counters have a unit.

    perfetto_check.py FILE...    prints one JSON object per file with what it holds
"""

import collections
import json
import sys

SKIPPED = 77


class Wrong(Exception):
    """The trace breaks a rule."""


def expect(condition, text):
    if not condition:
        raise Wrong(text)


class Checker:
    """Goes through the packets in file order, which is the order a viewer breaks ties by."""

    def __init__(self):
        self.descriptors = {}
        self.texts = collections.defaultdict(dict)  # by field of InternedData: number -> text
        self.stacks = collections.defaultdict(list)
        self.last_time = {}
        self.begun_flows = {}  # id -> (time, packet)
        self.ended_flows = {}
        self.slices = []  # (track, depth, begin, end, name, category)
        self.counters = collections.defaultdict(list)
        self.num_packets = 0

    def add(self, packet):
        first = self.num_packets == 0
        self.num_packets += 1
        expect(packet.trusted_packet_sequence_id == 1, "a packet of another sequence")
        flags = packet.sequence_flags
        expect(bool(flags & packet.SEQ_INCREMENTAL_STATE_CLEARED) == first,
               "the sequence's state is cleared by the first packet, and only there")
        self.add_texts(packet.interned_data)
        if packet.HasField("track_descriptor"):
            self.add_descriptor(packet.track_descriptor)
        elif packet.HasField("track_event"):
            self.add_event(packet.timestamp, packet.track_event)
        else:
            raise Wrong("a packet without track or event")

    def add_texts(self, interned):
        for field, key in (("event_names", "name"), ("event_categories", "name"),
                           ("debug_annotation_names", "name"),
                           ("debug_annotation_string_values", "str")):
            for entry in getattr(interned, field):
                expect(entry.iid != 0 and entry.iid not in self.texts[field],
                       f"{field}: number {entry.iid} given twice")
                self.texts[field][entry.iid] = getattr(entry, key)

    def add_descriptor(self, track):
        expect(track.uuid != 0 and track.uuid not in self.descriptors,
               f"track {track.uuid} described twice")
        if track.parent_uuid:
            expect(track.parent_uuid in self.descriptors, "a parent that comes later")
        if track.HasField("thread"):
            expect(track.thread.tid != track.thread.pid, "a lane that is a main thread")
            process = self.descriptors[track.parent_uuid].process
            expect(process.pid == track.thread.pid, "a lane of another process than its parent")
        if track.HasField("process"):
            expect(track.process.pid > 0 and track.process.process_name, "a nameless process")
        self.descriptors[track.uuid] = track

    def add_event(self, time, event):
        track = event.track_uuid
        expect(track in self.descriptors, f"an event of track {track}, which nobody described")
        if event.type == event.TYPE_COUNTER:
            expect(self.descriptors[track].counter.unit == 3, "memory is counted in bytes (3)")
            self.counters[track].append((time, event.counter_value))
            return
        expect(time >= self.last_time.get(track, 0), f"track {track} goes back in time")
        self.last_time[track] = time
        if event.type == event.TYPE_SLICE_BEGIN:
            name = self.texts["event_names"][event.name_iid]
            category = self.texts["event_categories"][event.category_iids[0]]
            self.stacks[track].append((time, name, category))
            for annotation in event.debug_annotations:
                expect(annotation.name_iid in self.texts["debug_annotation_names"],
                       "an annotation without name")
                if annotation.HasField("string_value_iid"):
                    expect(annotation.string_value_iid in
                           self.texts["debug_annotation_string_values"],
                           "an annotation without text")
        else:
            expect(event.type == event.TYPE_SLICE_END, f"event type {event.type}")
            expect(self.stacks[track], f"track {track} ends a slice that never began")
            begin, name, category = self.stacks[track].pop()
            self.slices.append((track, len(self.stacks[track]), begin, time, name, category))
        self.add_flows(time, event)

    def add_flows(self, time, event):
        for flow in event.flow_ids:
            expect(flow not in self.begun_flows, f"flow {flow} starts twice")
            self.begun_flows[flow] = (time, self.num_packets)
        for flow in event.terminating_flow_ids:
            expect(flow not in self.ended_flows, f"flow {flow} ends twice")
            self.ended_flows[flow] = (time, self.num_packets)

    def finish(self):
        for track, stack in self.stacks.items():
            expect(not stack, f"track {track} leaves slices open")
        for flow, begun in self.begun_flows.items():
            expect(flow in self.ended_flows, f"flow {flow} never ends")
            # Pairs compare by time and then by place in the file, as viewers sort.
            expect(begun < self.ended_flows[flow], f"flow {flow} ends before it starts")
        expect(len(self.begun_flows) == len(self.ended_flows), "a flow ends that never started")
        tracks = self.descriptors.values()
        return {
            "slices": len(self.slices),
            "nested": sum(1 for entry in self.slices if entry[1] > 0),
            "flows": len(self.begun_flows),
            "counters": sum(len(values) for values in self.counters.values()),
            "processes": sorted(track.process.process_name for track in tracks
                                if track.HasField("process")),
            "waits": sum(1 for entry in self.slices
                         if entry[4] in ("straggler wait", "host overhead")),
            "categories": dict(collections.Counter(entry[5] for entry in self.slices)),
        }


def check(path):
    """What the trace at `path` holds. Raises Wrong when it breaks a rule."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    trace = perfetto_trace_pb2.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    checker = Checker()
    for packet in trace.packet:
        checker.add(packet)
    return checker.finish()


def is_available():
    """Whether the published schema is installed here."""
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2  # noqa: F401
    except ImportError:
        return False
    return True


def main():
    if not is_available():
        print("the Python package perfetto is not installed", file=sys.stderr)
        sys.exit(SKIPPED)
    for path in sys.argv[1:]:
        try:
            print(json.dumps(check(path), sort_keys=True))
        except Wrong as wrong:
            print(f"{path}: {wrong}", file=sys.stderr)
            sys.exit(1)


if __name__ == "__main__":
    main()
