//! Findings and tables to terminal and JSON.
