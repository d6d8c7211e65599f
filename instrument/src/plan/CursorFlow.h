//===- CursorFlow.h - where the cursor needs a test or a store ------------===//
#ifndef MEMLODE_INSTRUMENT_CURSORFLOW_H
#define MEMLODE_INSTRUMENT_CURSORFLOW_H

#include "plan/Segments.h"

namespace memlode {

/// Marks the segments in front of which the cursor is tested for room, so that no path between two
/// tests writes more than the slack behind a chunk holds: the first segment after an entry or a
/// call, one in every cycle, and one where a path without a test grows too long.
void placeRoomTests(Plan &P);

/// Drops commits that no segment precedes on any path since the cursor was last in memory.
void dropCleanCommits(Plan &P);

} // namespace memlode
#endif
