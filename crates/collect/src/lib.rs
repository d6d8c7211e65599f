//! The collector: shared-memory rings of traced programs to a trace directory.
