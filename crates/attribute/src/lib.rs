//! Join events with names and objects into tables.
