//! Cache models: exact, fast, no I/O.
