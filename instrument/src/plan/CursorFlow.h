//===- CursorFlow.h - where the cursor needs a test or a store ------------===//
#ifndef MEMLODE_INSTRUMENT_CURSORFLOW_H
#define MEMLODE_INSTRUMENT_CURSORFLOW_H

#include "plan/Segments.h"

namespace memlode {

/// Marks the segments in front of which the cursor is tested for room, so that between two tests no path
/// writes more than the slack behind a chunk holds: the first after an entry or a call, one in every cycle,
/// and where a path without either grows too long.
void placeRoomTests(Plan &P);

/// Drops commits that no segment precedes on any path since the cursor was last in memory.
void dropCleanCommits(Plan &P);

} // namespace memlode
#endif
