//! One file per analysis: tables to findings.
